
// ---- tables

// columns: {title, value(row), text(row), kind: 'number' | 'text' | 'wrap', bar(row)}. Rows are shown in parts.
function table(place, columns, rows, {sortBy = 0, ascending = false, onRow = null, search = null, most = 60, empty = 'nothing'} = {}) {
  const body = element('tbody'), head = element('tr'), count = element('span');
  const more = element('button', {type: 'button', onclick: () => { shownRows = Infinity; draw(); }}, 'show all');
  const foot = element('div', {class: 'more-rows'}, count, more);
  let shownRows = most, order = {column: sortBy, ascending}, filter = '';
  const panel = element('div', {class: 'panel'});
  const compare = (a, b) => {
    const value = columns[order.column].value, x = value(a), y = value(b);
    const isMissing = (v) => v === null || v === undefined || v === '';
    if (isMissing(x) || isMissing(y)) return isMissing(x) - isMissing(y);
    const result = typeof x === 'number' && typeof y === 'number' ? x - y : String(x).localeCompare(String(y), 'en', {numeric: true});
    return order.ascending ? result : -result;
  };
  const draw = () => {
    const wanted = (search && filter ? rows.filter((row) => search(row).toLowerCase().includes(filter)) : [...rows]).sort(compare);
    columns.forEach((column, i) => {
      if (i === order.column) head.children[i].setAttribute('aria-sort', order.ascending ? 'ascending' : 'descending');
      else head.children[i].removeAttribute('aria-sort');
    });
    body.replaceChildren(...wanted.slice(0, shownRows).map((row) => {
      const made = element('tr', onRow ? {class: 'link', onclick: () => onRow(row)} : {});
      columns.forEach((column) => made.append(cell(column, row)));
      return made;
    }));
    const shownCount = Math.min(shownRows, wanted.length);
    count.textContent = wanted.length ? `${shownCount.toLocaleString('en')} of ${wanted.length.toLocaleString('en')}` : empty;
    more.hidden = shownCount >= wanted.length;
    foot.hidden = wanted.length > 0 && shownCount >= wanted.length && !filter;
  };
  columns.forEach((column, i) => {
    const sort = () => {
      const first = column.kind !== 'number';
      order = {column: i, ascending: order.column === i ? !order.ascending : first};
      draw();
    };
    head.append(element('th', {class: column.kind === 'number' ? 'number' : '', tabindex: 0, scope: 'col', onclick: sort, onkeydown: (event) => { if (event.key === 'Enter') sort(); }}, column.title));
  });
  if (search) {
    panel.append(element('div', {class: 'tools'}, element('input', {type: 'search', placeholder: 'filter', 'aria-label': 'filter', oninput: (event) => { filter = event.target.value.toLowerCase(); draw(); }})));
  }
  panel.append(element('div', {class: 'scroll'}, element('table', {}, element('thead', {}, head), body)), foot);
  place.append(panel);
  draw();
  return panel;
}

function cell(column, row) {
  const text = column.text ? column.text(row) : column.value(row);
  const made = element('td', {class: column.kind || 'text'});
  if (column.bar) {
    const bar = element('span', {class: 'bar'});
    bar.style.width = column.bar(row) * 100 + '%';
    made.append(element('span', {class: 'track'}, bar));
  }
  const short = shown(text === null || text === undefined ? '' : text, 400);
  if (column.kind !== 'number' && short.length > 40) made.title = shown(text, 1500);
  made.append(column.bar ? element('span', {class: 'amount'}, short) : short);
  return made;
}

const number = (title, value, text, more = {}) => ({title, value, text, kind: 'number', ...more});
const words = (title, value, kind = 'text') => ({title, value, kind});

function costColumns(rows) {
  const columns = [];
  const most = largest(rows.map((row) => row.seconds || 0));
  if (hasTimes) {
    columns.push(number('time', (row) => row.seconds, (row) => timeText(row.seconds), {bar: (row) => most > 0 ? row.seconds / most : 0}));
    columns.push(number('share', (row) => stepSeconds > 0 ? row.seconds / stepSeconds : 0, (row) => percentText(stepSeconds > 0 ? row.seconds / stepSeconds : 0)));
    columns.push(number('GFLOP/s', (row) => row.flops > 0 && row.seconds > 0 ? row.flops / row.seconds : null, (row) => row.flops > 0 && row.seconds > 0 ? (row.flops / row.seconds / 1e9).toFixed(1) : ''));
    columns.push(number('GB/s', (row) => row.bytes > 0 && row.seconds > 0 ? row.bytes / row.seconds : null, (row) => row.bytes > 0 && row.seconds > 0 ? (row.bytes / row.seconds / 1e9).toFixed(1) : ''));
  }
  columns.push(number('FLOPs', (row) => isNumber(row.flops) ? row.flops : null, (row) => countText(row.flops)), number('bytes', (row) => isNumber(row.bytes) ? row.bytes : null, (row) => bytesText(row.bytes)));
  return columns;
}

function showOperators() {
  const place = section('operators', hasTimes ? `Per run, the mean of ${data.runs.length}. FLOPs and bytes are estimates.` : 'FLOPs and bytes are estimates.');
  table(place, [words('operator', (row) => row.op), words('on', (row) => row.provider), number('nodes', (row) => row.nodes), ...costColumns(operatorTotals)], operatorTotals,
      {sortBy: hasTimes ? 3 : 2, onRow: (row) => { graphView.searchInput.value = row.op; graphView.searchInput.dispatchEvent(new Event('input')); document.getElementById('graph').scrollIntoView(); }});
}

function goTo(what) {
  choose(what);
  document.getElementById('graph').scrollIntoView();
}

function showLayers() {
  const place = section('layers', 'Every node, and the blocks of the graph. Click a row to see it in the graph.');
  const holder = element('div');
  const inner = blocks.filter((block) => block.number > 0);
  const nodeTable = () => table(holder, [words('node', nodeName), words('operator', (row) => row.op), ...costColumns(nodes), number('output', (row) => row.memory, (row) => bytesText(row.memory)),
    words('shape', (row) => row.outputs.map((t) => tensors[t].type).join('; ')), words('kernel', (row) => row.kernel),
    ...(data.errors ? [number('error', (row) => row.error, (row) => row.error === null ? '' : row.error.toExponential(1))] : [])],
  nodes.filter((node) => !node.idle), {sortBy: hasTimes ? 2 : 0, ascending: !hasTimes, onRow: (row) => goTo({node: row.number}), search: (row) => `${row.op} ${row.name} ${row.kernel}`});
  const blockTable = () => table(holder, [words('block', (row) => row.path), number('nodes', (row) => row.nodes.length), ...costColumns(inner)], inner, {sortBy: hasTimes ? 2 : 1, onRow: (row) => goTo({block: row.number}), search: (row) => row.path});
  const tabs = element('div', {class: 'tabs'});
  const choice = (name, show) => tabs.append(element('button', {type: 'button', onclick: (event) => {
    tabs.querySelectorAll('button').forEach((button) => button.classList.toggle('on', button === event.target));
    holder.replaceChildren();
    show();
  }}, name));
  choice(`nodes (${nodes.filter((node) => !node.idle).length})`, nodeTable);
  if (inner.length) choice(`blocks (${inner.length})`, blockTable);
  place.append(tabs, holder);
  tabs.firstChild.classList.add('on');
  nodeTable();
}

function showPlacement() {
  const {providers, copies} = data.placement;
  const place = section('placement', 'Which provider runs what, and why others did not.');
  table(place, [words('provider', (row) => row.provider), number('nodes', (row) => row.nodes), number('FLOPs', (row) => row.flops, (row) => countText(row.flops)), number('bytes', (row) => row.bytes, (row) => bytesText(row.bytes)),
    number('of unknown shape', (row) => row.unknown)], providers, {sortBy: 1});
  const declined = nodes.flatMap((node) => (node.declined || []).map((entry) => ({node, ...entry})));
  place.append(element('h3', {}, 'Nodes that a provider declined'));
  if (declined.length) table(place, [words('node', (row) => nodeName(row.node)), words('operator', (row) => row.node.op), words('declined by', (row) => row.provider), words('because', (row) => row.reason, 'wrap'), words('runs on', (row) => row.node.provider)], declined, {onRow: (row) => goTo({node: row.node.number}), search: (row) => row.reason + ' ' + row.node.op + ' ' + row.node.name});
  else place.append(element('p', {class: 'lead'}, 'None: the first provider that was asked runs every node.'));
  place.append(element('h3', {}, 'Kernels'));
  const kernels = new Map();
  nodes.filter((node) => !node.idle).forEach((node) => {
    const key = `${node.provider}\n${node.op}\n${node.kernel}\n${node.precision}`;
    const entry = kernels.get(key) || {provider: node.provider, op: node.op, kernel: node.kernel, precision: node.precision, nodes: 0, seconds: 0, flops: 0, bytes: 0};
    entry.nodes += 1;
    for (const part of ['seconds', 'flops', 'bytes']) entry[part] += isNumber(node[part]) ? node[part] : 0;
    kernels.set(key, entry);
  });
  const rows = [...kernels.values()];
  table(place, [words('kernel', (row) => row.kernel), words('operator', (row) => row.op), words('on', (row) => row.provider), words('type', (row) => row.precision), number('nodes', (row) => row.nodes), ...costColumns(rows)], rows, {sortBy: hasTimes ? 5 : 4, most: 30});
  if (copies.length) {
    place.append(element('h3', {}, 'Tensors copied from one provider to another'));
    table(place, [words('tensor', (row) => row.tensor), words('from', (row) => row.from), words('to', (row) => row.to), number('bytes', (row) => row.bytes, (row) => bytesText(row.bytes))], copies, {sortBy: 3});
  }
}

function showWeights() {
  const weights = tensors.filter((tensor) => tensor.kind === 'weight' && isNumber(tensor.bytes));
  const total = sum(weights.map((tensor) => tensor.bytes));
  const place = section('weights', `${plural(weights.length, 'tensor')}, ${bytesText(total)}, as the optimised graph has them; kernels hold ${bytesText(data.session.weight_bytes)} in memory.`);
  const most = largest(weights.map((tensor) => tensor.bytes));
  table(place, [words('weight', (row) => row.name), words('type', (row) => row.type), number('bytes', (row) => row.bytes, (row) => bytesText(row.bytes), {bar: (row) => most > 0 ? row.bytes / most : 0}),
    number('share', (row) => total > 0 ? row.bytes / total : 0, (row) => percentText(total > 0 ? row.bytes / total : 0)), words('read by', (row) => row.readers.map((n) => nodes[n].op).slice(0, 4).join(', ')), words('node', (row) => row.readers.length ? nodeName(nodes[row.readers[0]]) : '')],
  weights, {sortBy: 2, most: 30, onRow: (row) => { if (row.readers.length) goTo({node: row.readers[0]}); }, search: (row) => row.name + ' ' + row.type, empty: 'no weights'});
}

function showOptimiser() {
  const rewrites = data.rewrites;
  const place = section('optimiser', `${plural(rewrites.length, 'rewrite')} at level ${data.session.level}: ${data.model.nodes.toLocaleString('en')} nodes in the file, ${nodes.length.toLocaleString('en')} in the graph that runs (Constant nodes become weights).`);
  if (!rewrites.length) return;
  const passes = new Map();
  rewrites.forEach((rewrite) => {
    const entry = passes.get(rewrite.pass) || {pass: rewrite.pass, count: 0, gone: 0, made: 0};
    entry.count += 1;
    entry.gone += rewrite.before.length;
    entry.made += rewrite.after.length;
    passes.set(rewrite.pass, entry);
  });
  const about = (row) => Object.prototype.hasOwnProperty.call(data.passes, row.pass) ? data.passes[row.pass] : {};
  let wanted = '';
  const list = element('div', {class: 'panel'});
  let most = 40;
  const draw = () => {
    const chosenOnes = rewrites.map((rewrite, i) => ({rewrite, i})).filter((entry) => !wanted || entry.rewrite.pass === wanted);
    list.replaceChildren(...chosenOnes.slice(0, most).map(({rewrite, i}) => element('div', {class: 'rewrite'}, element('div', {class: 'number'}, String(i + 1)), element('div', {class: 'pass'}, rewrite.pass),
        element('div', {class: 'change'}, ...rewrite.before.map((node) => element('div', {class: 'gone'}, shown(node))), ...rewrite.after.map((node) => element('div', {class: 'new'}, shown(node))),
            ...(rewrite.renamed || []).slice(0, 4).map(([before, after]) => element('div', {class: 'renamed'}, `${shown(before, 120)} is now ${shown(after, 120)}`))))));
    if (chosenOnes.length > most) list.append(element('div', {class: 'more-rows'}, `${most} of ${chosenOnes.length.toLocaleString('en')}`, element('button', {type: 'button', onclick: () => { most = Infinity; draw(); }}, 'show all')));
  };
  table(place, [words('pass', (row) => row.pass), number('rewrites', (row) => row.count), number('nodes gone', (row) => row.gone), number('nodes made', (row) => row.made), words('results', (row) => about(row).exact ? 'exact' : 'may round'), words('what it does', (row) => about(row).does, 'wrap')], [...passes.values()],
      {sortBy: 1, onRow: (row) => { wanted = wanted === row.pass ? '' : row.pass; most = 40; heading.textContent = wanted ? `Rewrites of ${wanted}` : 'Rewrite by rewrite'; draw(); }});
  const heading = element('h3', {}, 'Rewrite by rewrite');
  place.append(heading, list);
  draw();
}

// ---- all of it

showOverview();
showGraph();
showOperators();
showTimeline();
showLayers();
showMemory();
showRoofline();
showPlacement();
showWeights();
showOptimiser();
showNavigation();

// What tests in a browser ask for with #selftest: the page tries itself and says in its body how that went.
if (options.has('selftest')) {
  const results = [];
  const test = (name, check) => {
    try { results.push(check() === false ? `FAILED ${name}` : `ok ${name}`); } catch (error) { results.push(`FAILED ${name}: ${error.message}`); }
  };
  const boxes = () => document.querySelectorAll('.picture [data-node], .picture [data-block]').length;
  test('opens with what a screen holds', () => boxes() > 0 && boxes() <= 40);
  test('opens and folds a block', () => {
    const block = document.querySelector('.picture [data-block]');
    if (!block) return true;
    const number = Number(block.dataset.block), before = boxes();
    block.dispatchEvent(new MouseEvent('click', {bubbles: true}));
    const isOpen = opened.has(number) && boxes() === before - 1 + blocks[number].children.length;
    document.querySelector('.frame.chosen > rect').dispatchEvent(new MouseEvent('click', {bubbles: true}));
    return isOpen && boxes() === before;
  });
  test('every node that runs can be found, shown and chosen', () => {
    const running = nodes.filter((node) => !node.idle), part = Math.max(1, Math.floor(running.length / 25));
    return running.every((node, i) => {
      if (i % part) return true;
      choose({node: node.number});
      return document.querySelector('.box.chosen, .frame.chosen') !== null && graphView.details.textContent.includes(node.op);
    });
  });
  test('search marks what it finds', () => {
    graphView.searchInput.value = nodes.find((node) => !node.idle).op;
    graphView.searchInput.dispatchEvent(new Event('input'));
    const found = document.querySelector('.box.hit') !== null;
    graphView.searchInput.value = '';
    graphView.searchInput.dispatchEvent(new Event('input'));
    return found;
  });
  test('every colour can be chosen', () => Object.keys(colourModes).every((mode) => { graphView.mode = mode; graphView.draw(); return graphView.legend.textContent !== ''; }));
  test('zooms and fits', () => { const before = graphView.view.scale; graphView.zoom(1.5); const zoomed = graphView.view.scale > before; graphView.fit(); return zoomed; });
  test('tables sort', () => {
    const head = document.querySelector('#operators th');
    head.click();
    const first = document.querySelector('#operators td').textContent;
    head.click();
    return operatorTotals.length < 2 || first !== document.querySelector('#operators td').textContent;
  });
  test('boxes of a block do not overlap', () => [0, ...opened].every((number) => {
    const list = arrange(number).boxes;
    return list.every((a, i) => list.every((b, j) => i >= j || Math.abs(a.x - b.x) >= (a.width + b.width) / 2 - 0.5 || Math.abs(a.y - b.y) >= (a.height + b.height) / 2 - 0.5));
  }));
  test('has no script but its own', () => document.querySelectorAll('script').length === 2 && document.querySelectorAll('img, iframe, object, link').length === 0);
  choose({});
  document.body.append(element('pre', {id: 'selftest'}, results.join('\n')));
}
