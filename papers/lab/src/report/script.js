// What can be done with a figure: point at values, hide series, turn to the table, copy it. Without
// this script everything is there all the same, tables below plots.
'use strict';

const tip = document.getElementById('tip');
let pointed = null;

function showTip(mark) {
  if (pointed === mark) return;
  if (pointed) pointed.classList.remove('at');
  pointed = mark;
  tip.hidden = !mark;
  if (!mark) return;
  mark.classList.add('at');
  tip.textContent = mark.dataset.tip;
  const box = mark.getBoundingClientRect();
  const middle = box.left + box.width / 2 - tip.offsetWidth / 2;
  const left = Math.max(4, Math.min(middle, document.documentElement.clientWidth - tip.offsetWidth - 4));
  const above = box.top - tip.offsetHeight - 8;
  tip.style.left = `${left + window.scrollX}px`;
  tip.style.top = `${(above > 0 ? above : box.bottom + 8) + window.scrollY}px`;
}

// The browser would show titles of its own beside ours.
function takeTitles(chart) {
  const title = chart.querySelector(':scope > title');
  chart.setAttribute('aria-label', title.textContent);
  chart.setAttribute('aria-describedby', chart.querySelector(':scope > desc').id);
  chart.removeAttribute('aria-labelledby');
  title.remove();
  for (const mark of chart.querySelectorAll('.mark')) {
    const own = mark.querySelector('title');
    mark.dataset.tip = own.textContent;
    own.remove();
  }
}

// From value to value with the arrow keys, over what is not hidden.
function walk(event, chart) {
  const steps = { ArrowRight: 1, ArrowDown: 1, ArrowLeft: -1, ArrowUp: -1 };
  if (event.key === 'Escape') showTip(null);
  if (!(event.key in steps)) return;
  const marks = [...chart.querySelectorAll('.mark')].filter((mark) => !mark.closest('.off'));
  if (marks.length === 0) return;
  const here = marks.indexOf(pointed);
  const next = here < 0 ? 0 : (here + steps[event.key] + marks.length) % marks.length;
  event.preventDefault();
  marks[next].scrollIntoView({ block: 'nearest', inline: 'nearest' });
  showTip(marks[next]);
}

function cellText(cell) {
  if ('value' in cell.dataset) return cell.dataset.value;
  // A spreadsheet would compute what begins like a formula.
  const text = cell.textContent;
  return /^[=+\-@\t\r]/.test(text) ? `'${text}` : text;
}

function csv(table) {
  const quoted = (text) => (/[",\n\r]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text);
  const line = (row) => [...row.cells].map((cell) => quoted(cellText(cell))).join(',');
  return `${[...table.rows].map(line).join('\n')}\n`;
}

async function copy(text) {
  try {
    await navigator.clipboard.writeText(text);
    return true;
  } catch {
    // No clipboard for pages from files, in some browsers: the old way.
    const area = document.createElement('textarea');
    area.value = text;
    document.body.append(area);
    area.select();
    const done = document.execCommand('copy');
    area.remove();
    return done;
  }
}

function setUp(figure) {
  const [chart, plot, data] = ['.chart', '.plot', '.data'].map((name) => figure.querySelector(name));
  const tools = figure.querySelector('.tools');
  takeTitles(chart);
  tools.hidden = false;
  data.hidden = true;

  tools.addEventListener('click', async ({ target }) => {
    if ('show' in target.dataset) {
      plot.hidden = target.dataset.show !== 'chart';
      data.hidden = target.dataset.show !== 'table';
      for (const button of tools.querySelectorAll('[data-show]')) {
        button.setAttribute('aria-pressed', button === target);
      }
      showTip(null);
    } else if ('copy' in target.dataset) {
      const done = await copy(csv(data.querySelector('table')));
      target.textContent = done ? 'Copied' : 'Cannot copy here: select the table';
      setTimeout(() => { target.textContent = 'Copy as CSV'; }, 2000);
    }
  });
  figure.querySelector('.legend').addEventListener('click', (event) => {
    const button = event.target.closest('button');
    if (!button) return;
    const shown = button.getAttribute('aria-pressed') !== 'true';
    button.setAttribute('aria-pressed', shown);
    for (const part of chart.querySelectorAll(`[data-series="${button.dataset.series}"]`)) {
      part.classList.toggle('off', !shown);
    }
  });
  const area = chart.parentElement;
  for (const kind of ['pointermove', 'pointerdown']) {
    area.addEventListener(kind, ({ target }) => showTip(target.closest('.mark')));
  }
  area.addEventListener('pointerleave', () => showTip(null));
  area.addEventListener('blur', () => showTip(null));
  area.addEventListener('keydown', (event) => walk(event, chart));
}

document.querySelectorAll('.figure').forEach(setUp);
