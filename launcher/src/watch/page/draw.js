// Elements, numbers and curves. What ranks say is put in as text only.
'use strict';

const SVG = 'http://www.w3.org/2000/svg';
const $ = (id) => document.getElementById(id);

/** An element with a class and children: texts or elements. */
function el(name, cls, ...children) {
  const e = document.createElement(name);
  if (cls) e.className = cls;
  e.append(...children);
  return e;
}

function svg(name, attributes, ...children) {
  const e = document.createElementNS(SVG, name);
  for (const [key, value] of Object.entries(attributes)) e.setAttribute(key, value);
  e.append(...children);
  return e;
}

/** Sets the text of an element if it has changed, so that selections stay. */
function say(e, text) {
  if (e.textContent !== text) e.textContent = text;
}

function number(x) {
  if (x === null || x === undefined || !Number.isFinite(x)) return '–';
  const a = Math.abs(x);
  if (a === 0) return '0';
  if (a >= 1e5 || a < 1e-3) return x.toExponential(2);
  if (a >= 100) return x.toFixed(0);
  return x.toPrecision(3);
}

function bytes(n) {
  const units = ['B', 'kB', 'MB', 'GB', 'TB', 'PB'];
  let i = 0;
  while (n >= 1000 && i + 1 < units.length) { n /= 1000; i += 1; }
  return `${i === 0 || n >= 100 ? n.toFixed(0) : n.toPrecision(3)} ${units[i]}`;
}

function nanoseconds(n) {
  if (n < 1e6) return `${(n / 1e3).toPrecision(3)} µs`;
  if (n < 1e9) return `${(n / 1e6).toPrecision(3)} ms`;
  return `${(n / 1e9).toPrecision(3)} s`;
}

function clock(seconds) {
  const two = (n) => String(Math.floor(n)).padStart(2, '0');
  const h = Math.floor(seconds / 3600);
  return h > 0 ? `${h}:${two(seconds / 60 % 60)}:${two(seconds % 60)}` : `${Math.floor(seconds / 60)}:${two(seconds % 60)}`;
}

/** A line of the program without the folders of its file. */
function short(place) {
  return place.replace(/^(\S*\/)?([^/\s]*\/[^/\s]*:\d)/, '$2');
}

/** A few round numbers between two. */
function ticks(low, high, count) {
  const raw = (high - low) / count;
  if (!(raw > 0)) return [low];
  const unit = 10 ** Math.floor(Math.log10(raw));
  const step = unit * [1, 2, 5, 10].find((m) => m * unit >= raw);
  const all = [];
  for (let x = Math.ceil(low / step) * step; x <= high + step * 1e-9 && all.length < 20; x += step) all.push(x);
  return all;
}

/** A curve of parts [at, low, high, last]; a part that is not finite is a gap. */
function curve(parts, format, unit) {
  const [w, h, left, right, top, bottom] = [320, 130, 44, 8, 6, 18];
  const picture = svg('svg', { viewBox: `0 0 ${w} ${h}`, role: 'img' });
  const finite = parts.filter((p) => p[1] !== null && p[2] !== null && p[3] !== null);
  if (finite.length === 0) return picture;
  let [x0, x1] = [parts[0][0], parts[parts.length - 1][0]];
  if (x0 === x1) { x0 -= 0.5; x1 += 0.5; }
  let low = Math.min(...finite.map((p) => p[1]));
  let high = Math.max(...finite.map((p) => p[2]));
  if (low === high) { const d = Math.abs(low) / 10 || 1; low -= d; high += d; }
  const x = (v) => (left + (v - x0) / (x1 - x0) * (w - left - right)).toFixed(1);
  const y = (v) => (top + (high - v) / (high - low) * (h - top - bottom)).toFixed(1);
  for (const t of ticks(low, high, 4)) {
    picture.append(svg('line', { class: 'grid', x1: left, x2: w - right, y1: y(t), y2: y(t) }));
    picture.append(svg('text', { x: left - 5, y: Number(y(t)) + 3, 'text-anchor': 'end' }, format(t)));
  }
  for (const t of ticks(x0, x1, 5)) {
    picture.append(svg('text', { x: x(t), y: h - 4, 'text-anchor': 'middle' }, unit(t)));
  }
  let runs = [[]];
  for (const p of parts) {
    if (p[1] === null || p[3] === null) runs.push([]);
    else runs[runs.length - 1].push(p);
  }
  for (const run of runs.filter((r) => r.length > 0)) {
    const up = run.map((p) => `${x(p[0])},${y(p[2])}`);
    const down = run.map((p) => `${x(p[0])},${y(p[1])}`).reverse();
    picture.append(svg('polygon', { class: 'band', points: up.concat(down).join(' ') }));
    const line = run.length > 1 ? run : [run[0], [run[0][0] + (x1 - x0) / 200, 0, 0, run[0][3]]];
    picture.append(svg('polyline', { class: 'curve', points: line.map((p) => `${x(p[0])},${y(p[3])}`).join(' ') }));
  }
  return picture;
}

/** A picture with its name and last value. */
function plot(name, last, picture) {
  const title = el('span', '', name);
  title.title = name;
  return el('figure', '', el('figcaption', '', title, el('b', '', last)), picture);
}

/** A bar of shares, each in the colour of its part. */
function bar(parts, shares) {
  const all = el('div', 'bar');
  parts.forEach((part, i) => {
    if (!(shares[i] > 0.004)) return;
    const piece = el('i', part);
    piece.style.width = `${shares[i] * 100}%`;
    piece.title = `${part} ${(shares[i] * 100).toFixed(0)} %`;
    all.append(piece);
  });
  return all;
}
