// The parts of the page, each from the state.

/** What is chosen. */
const chosen = { rank: 0, by: 'phase', boxing: '', search: '', of: '' };
const ENDS = ['ended', 'silent', 'starting'];
/** Rows of the table of ops. */
const MOST_OPS = 48;

function tile(value, name) {
  return el('div', 'tile', el('b', '', value), el('span', '', name));
}

function showHead(s, gone) {
  say($('program'), s.program || 'oflaunch');
  document.title = `${gone ? 'ended' : s.status} – ${s.program}`;
  say($('status'), gone ? 'no longer there' : s.status);
  $('status').className = `badge ${gone && s.status !== 'failed' ? 'gone' : s.status}`;
  const hosts = s.hosts.length > 1 ? ` on ${s.hosts.length} hosts` : s.hosts.length ? ` on ${s.hosts[0].name}` : '';
  const restarts = s.restart > 0 ? `, restart ${s.restart}` : '';
  say($('about'), `${s.world} rank${s.world === 1 ? '' : 's'}${hosts}, ${clock(s.seconds)}${restarts}`);
  const notice = $('notice');
  notice.hidden = !(gone || s.status === 'failed');
  notice.className = s.why ? 'notice failed' : 'notice';
  const end = gone ? 'oflaunch does not answer any more: the job has ended. This is the last that was seen of it.' : '';
  say(notice, s.why || end || `the job has failed${s.code === null ? '' : ` with code ${s.code}`}`);
  const held = $('held');
  held.hidden = s.held.length === 0 || gone;
  held.replaceChildren(...s.held.slice(0, 8).map((h) =>
    el('li', '', el('b', '', `${h.seconds} s`), `${h.text}. A stall ends the job after ${number(s.stall)} s.`)));
}

function showTiles(s) {
  const values = [
    tile(number(s.steps), 'steps a second'),
    tile(s.rows > 0 ? number(s.rows) : '–', 'rows a second, each rank'),
    tile(bytes(s.resident), 'memory of all ranks'),
    tile(`${(s.waits * 100).toFixed(0)} %`, 'of the time ranks wait for others'),
    tile(String(s.held.length), s.held.length === 1 ? 'rank holds up others' : 'ranks hold up others'),
  ];
  $('tiles').replaceChildren(...values);
}

function showMetrics(m) {
  const pictures = m.curves.map((c) => plot(c.name, shortened(c.last), curve(c.points, number, number)));
  if (pictures.length === 0) pictures.push(el('p', 'empty', 'Nothing is logged yet. Values of `oflow::log` come here when the log is flushed.'));
  if (m.beyond) pictures.push(el('p', 'empty', 'Further metrics are not shown.'));
  $('metrics').replaceChildren(...pictures);
}

function shortened(text) {
  const x = Number(text);
  return Number.isFinite(x) && text !== '' ? number(x) : text;
}

function showRates(s) {
  const names = [['steps a second', number], ['rows a second, each rank', number], ['memory of all ranks', bytes]];
  const last = (parts) => (parts.length ? parts[parts.length - 1][3] : null);
  const shown = s.rates.map((parts, i) => ({ parts, name: names[i][0], format: names[i][1] }))
    .filter((r) => r.parts.some((p) => p[2] > 0));
  $('rates').replaceChildren(...shown.map((r) => plot(r.name, r.format(last(r.parts)), curve(r.parts, r.format, clock))));
  if (shown.length === 0) $('rates').append(el('p', 'empty', 'No step has ended yet.'));
}

/** Colour of a share from 0 to 1. */
function ramp(share) {
  const percent = 100 * Math.min(1, Math.max(0, share));
  return `color-mix(in oklab, var(--waiting) ${percent.toFixed(0)}%, var(--ended))`;
}

function showHeat(s) {
  const heat = $('heat');
  const known = new Map(s.ranks.map((r) => [r.rank, r]));
  const columns = s.world <= 16 ? Math.max(4, Math.min(s.world, 8)) : s.world <= 64 ? 16 : 32;
  heat.style.gridTemplateColumns = `repeat(${columns}, minmax(0, ${s.world <= 16 ? '4rem' : '1fr'}))`;
  while (heat.children.length > s.world) heat.lastChild.remove();
  while (heat.children.length < s.world) {
    const rank = heat.children.length;
    const cell = el('button', 'cell');
    cell.addEventListener('click', () => { chosen.rank = rank; show(); });
    heat.append(cell);
  }
  const largest = Math.max(1, ...s.ranks.map((r) => r.resident));
  for (let rank = 0; rank < s.world; rank += 1) {
    const cell = heat.children[rank];
    const r = known.get(rank);
    const phase = r ? r.phase : 'starting';
    const by = chosen.by !== 'phase' && r && !ENDS.includes(phase);
    const share = !by ? 0 : chosen.by === 'wait' ? r.shares[2] : r.resident / largest;
    const pale = by ? share < 0.5 : ['starting', 'ended'].includes(phase);
    cell.className = `cell ${by ? '' : phase}${pale ? ' pale' : ''}${rank === chosen.rank ? ' chosen' : ''}`;
    cell.style.background = by ? ramp(share) : '';
    if (s.world <= 64) say(cell, String(rank));
    cell.title = r ? `rank ${rank}: ${phase}, waits ${(r.shares[2] * 100).toFixed(0)} %, ${bytes(r.resident)}, ${r.op}` : `rank ${rank}: nothing heard yet`;
  }
  const legend = $('legend');
  if (chosen.by === 'phase') {
    legend.replaceChildren(...Object.entries(s.phases).map(([phase, n]) => el('span', '', el('i', phase), `${n} ${phase}`)));
  } else {
    const strip = el('span', 'ramp');
    strip.style.background = `linear-gradient(to right, ${[0, 0.25, 0.5, 0.75, 1].map(ramp).join(', ')})`;
    const [from, to] = chosen.by === 'wait' ? ['never waits', 'waits all the time'] : ['0', bytes(largest)];
    legend.replaceChildren(el('span', '', from), strip, el('span', '', to));
  }
}

function showRank(s) {
  const r = s.ranks.find((one) => one.rank === chosen.rank);
  const host = s.hosts.find((h) => chosen.rank >= h.first && chosen.rank < h.first + h.count);
  const title = el('b', '', `rank ${chosen.rank}${host ? ` on ${host.name}` : ''}`);
  if (!r) {
    $('rank').replaceChildren(title, ': nothing heard yet');
    return;
  }
  const rows = [['phase', r.phase]];
  if (r.op) rows.push(['last op', `${r.op}${r.ordinal === null ? '' : ` #${r.ordinal}`}, ${(r.last_ms / 1000).toFixed(1)} s ago`], ['line', r.place]);
  if (r.call) rows.push(['call', r.call]);
  if (r.wait) rows.push(['waits', `${(r.wait.ms / 1000).toFixed(1)} s for rank ${r.wait.ranks.join(', ')} in ${r.wait.call}`]);
  rows.push(['speed', `${number(r.steps)} steps/s${r.rows > 0 ? `, ${number(r.rows)} rows/s` : ''}`]);
  rows.push(['memory', [`process ${bytes(r.resident)}`, ...r.memory.map(([device, n]) => `tensors on ${device} ${bytes(n)}`)].join(', ')]);
  const list = el('dl', '', ...rows.flatMap(([name, value]) => [el('dt', '', name), el('dd', '', value)]));
  $('rank').replaceChildren(title, bar(s.parts, r.shares), list);
}

function row(kind, cells, numeric) {
  return el('tr', '', ...cells.map((c, i) => el(kind, numeric.includes(i) ? 'n' : '', c)));
}

function showOps(s) {
  // Others wait for the one that waits least.
  const all = s.ranks.slice();
  if (all.length > MOST_OPS) all.sort((a, b) => ENDS.includes(a.phase) - ENDS.includes(b.phase) || a.shares[2] - b.shares[2]);
  const few = all.slice(0, MOST_OPS);
  say($('opsnote'), few.length < all.length ? `${few.length} of ${all.length} ranks: those that wait least come first` : '');
  const head = row('th', ['rank', 'phase', 'time', 'steps/s', 'memory', 'last op', 'line'], [0, 3, 4]);
  const body = few.map((r) => {
    const op = r.wait ? `${r.op}, waits ${(r.wait.ms / 1000).toFixed(0)} s for ${r.wait.ranks.slice(0, 4).join(', ')}` : r.op;
    const line = row('td', [String(r.rank), r.phase, bar(s.parts, r.shares), number(r.steps), bytes(r.resident), op, short(r.place)], [0, 3, 4]);
    line.title = r.place;
    line.classList.add('pick');
    line.classList.toggle('chosen', r.rank === chosen.rank);
    line.addEventListener('click', () => { chosen.rank = r.rank; show(); });
    return line;
  });
  $('ops').replaceChildren(head, ...body);
}

/** What is alike of boxings that are shown as one. */
function keyOf(b) {
  return JSON.stringify([b.op, b.backward, b.place, b.tensor, b.from, b.to, b.mesh, b.to_mesh]);
}

function showBoxings(s, address) {
  const kinds = new Map();
  for (const b of s.boxings) {
    const kind = kinds.get(keyOf(b)) ?? { ...b, count: 0 };
    kind.count += 1;
    kinds.set(keyOf(b), kind);
  }
  const all = [...kinds.values()].sort((a, b) => (keyOf(a) < keyOf(b) ? -1 : 1));
  // A tensor stays in the picture as long as it is boxed again and again.
  const drawn = all.filter((b) => b.drawn);
  const pick = drawn.find((b) => keyOf(b) === chosen.boxing) ?? drawn.slice().sort((a, b) => b.bytes - a.bytes)[0];
  const head = row('th', ['op', 'seen', 'tensor', 'from', 'to', 'mesh', 'sent', 'time', 'line'], [1, 6, 7]);
  const body = all.map((b) => {
    const mesh = b.to_mesh ? `${b.mesh} → ${b.to_mesh}` : b.mesh;
    const op = b.backward ? `${b.op} (backward)` : b.op;
    const cells = [op, `${b.count}×`, b.tensor, b.from, b.to, mesh, bytes(b.bytes), nanoseconds(b.ns), short(b.place)];
    const line = row('td', cells, [1, 6, 7]);
    line.title = `rank ${b.rank}, ${b.place}`;
    if (b.drawn) {
      line.classList.add('pick');
      line.classList.toggle('chosen', b === pick);
      line.addEventListener('click', () => { chosen.boxing = keyOf(b); show(); });
    }
    return line;
  });
  $('boxings').replaceChildren(head, ...body);
  const layout = $('layout');
  if (!pick) {
    if (!layout.firstChild) layout.replaceChildren(el('p', 'empty', 'No tensor has been boxed yet.'));
    return;
  }
  chosen.boxing = keyOf(pick);
  if (layout.dataset.key === chosen.boxing) return;
  layout.dataset.key = chosen.boxing;
  const picture = (end, text) => {
    const image = el('img');
    image.alt = text;
    // A picture of many parts is not made smaller than can be read.
    image.addEventListener('load', () => image.classList.toggle('tall', image.naturalHeight > 2 * image.naturalWidth));
    image.addEventListener('error', () => image.replaceWith(el('p', '', 'too many parts for a picture')));
    image.src = address('layout.svg', { boxing: pick.number, end });
    return el('figure', '', el('figcaption', '', el('span', '', text)), image);
  };
  layout.replaceChildren(
    picture('from', `${pick.tensor} before ${pick.op}`),
    picture('to', `${pick.tensor} after the boxing`),
  );
}
