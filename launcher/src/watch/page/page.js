// Asks for the state once a second and shows it.

const token = document.body.dataset.token;
/** The last state; lines that are kept; number of the last line. */
let state = null;
let kept = [];
let last = 0;
let version = -1;
let failures = 0;
const MOST_LINES = 2000;

function address(path, query) {
  return `${path}?${new URLSearchParams({ token, ...query })}`;
}

async function ask(path, query) {
  const answer = await fetch(address(path, query), { cache: 'no-store', signal: AbortSignal.timeout(4000) });
  if (!answer.ok) throw new Error(String(answer.status));
  return answer.json();
}

/** Shows the state again, as after a choice. */
function show() {
  if (!state) return;
  const gone = failures >= 3;
  showHead(state, gone);
  showTiles(state);
  showHeat(state);
  showRank(state);
  showOps(state);
  showBoxings(state, address);
}

function lineOf(line) {
  const [, rank, isError, time, text] = line;
  const at = new Date(time * 1000).toLocaleTimeString([], { hour12: false });
  const e = el('div', isError ? 'err' : '', el('i', '', `${at} rank ${rank}`));
  const words = chosen.search;
  let from = 0;
  for (let i = words ? text.toLowerCase().indexOf(words) : -1; i >= 0; i = text.toLowerCase().indexOf(words, from)) {
    e.append(text.slice(from, i), el('mark', '', text.slice(i, i + words.length)));
    from = i + words.length;
  }
  e.append(text.slice(from));
  return e;
}

function matches(line) {
  return !chosen.search || line[4].toLowerCase().includes(chosen.search);
}

/** Adds lines, or shows all of them again. The view stays at the end if it is there. */
function showLines(added, again) {
  const box = $('lines');
  const atEnd = again || box.scrollHeight - box.scrollTop - box.clientHeight < 30;
  const shown = (again ? kept : added).filter(matches).map(lineOf);
  if (again) box.replaceChildren(...shown);
  else box.append(...shown);
  while (box.children.length > MOST_LINES) box.firstChild.remove();
  if (box.children.length === 0) box.append(el('div', 'empty', kept.length ? 'No line has this.' : 'Nothing is printed yet.'));
  else if (shown.length && box.firstChild.className === 'empty') box.firstChild.remove();
  if (atEnd) box.scrollTop = box.scrollHeight;
}

async function update() {
  state = await ask('state.json', {});
  failures = 0;
  show();
  showRates(state);
  if (state.metrics !== version) {
    showMetrics(await ask('metrics.json', {}));
    version = state.metrics;
  }
  const of = chosen.of;
  const news = await ask('lines.json', of === '' ? { after: last } : { after: last, rank: of });
  if (of !== chosen.of) return;
  last = news.last;
  kept = kept.concat(news.lines).slice(-MOST_LINES);
  if (news.lines.length || !$('lines').firstChild) showLines(news.lines, false);
  const select = $('of');
  for (let rank = select.options.length - 1; rank < state.world; rank += 1) {
    const option = el('option', '', `rank ${rank}`);
    option.value = String(rank);
    select.append(option);
  }
}

async function run() {
  for (;;) {
    try {
      await update();
    } catch {
      failures += 1;
      show();
    }
    await new Promise((done) => { setTimeout(done, failures ? Math.min(10000, 1000 * failures) : 1000); });
  }
}

$('colour').addEventListener('click', (event) => {
  const by = event.target.dataset.by;
  if (!by) return;
  chosen.by = by;
  for (const button of $('colour').children) button.classList.toggle('on', button.dataset.by === by);
  show();
});
$('search').addEventListener('input', (event) => {
  chosen.search = event.target.value.toLowerCase();
  showLines([], true);
});
$('of').addEventListener('change', (event) => {
  [chosen.of, last, kept] = [event.target.value, 0, []];
  $('lines').replaceChildren();
});
run();
