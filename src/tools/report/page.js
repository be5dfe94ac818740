'use strict';
// What everything else uses: the data, elements, words for quantities. Text of a model only ever becomes the text of an
// element.
const data = JSON.parse(document.getElementById('data').textContent);
const nodes = data.nodes, tensors = data.tensors, blocks = data.blocks;
const hasTimes = data.runs.length > 0;

// ---- elements

function element(name, attributes = {}, ...children) {
  return fill(document.createElement(name), attributes, children);
}

function drawn(name, attributes = {}, ...children) {
  return fill(document.createElementNS('http://www.w3.org/2000/svg', name), attributes, children);
}

function fill(made, attributes, children) {
  for (const [key, value] of Object.entries(attributes)) {
    if (key.startsWith('on')) made.addEventListener(key.slice(2), value);
    else if ((key === 'fill' || key === 'stroke') && String(value).includes('(')) made.style[key] = value;
    else if (value !== null && value !== undefined) made.setAttribute(key, value);
  }
  made.append(...children.filter((child) => child !== null && child !== undefined));
  return made;
}

// Text of a model as it is shown: characters that are not seen, or turn text around, become visible; long text loses
// its middle.
function shown(text, most = 300) {
  let result = String(text).replace(
      /[\u0000-\u001f\u007f-\u009f\u200b-\u200f\u2028-\u202e\u2060-\u2069\ufeff\u061c]/g,
      (c) => '⟨' + c.charCodeAt(0).toString(16).padStart(4, '0') + '⟩');
  if (result.length > most) {
    const tail = Math.floor((most - 1) / 2);
    result = result.slice(0, most - 1 - tail) + '…' + result.slice(-tail);
  }
  return result;
}

function facts(pairs) {
  const list = element('dl', {class: 'facts'});
  for (const [name, value] of pairs) {
    if (value === null || value === undefined || value === '') continue;
    list.append(element('dt', {}, name), element('dd', {}, value instanceof Node ? value : shown(value, 2000)));
  }
  return list;
}

// ---- quantities

function scaled(value, units, base = 1000) {
  let unit = 0;
  while (Math.abs(value) >= 999.5 && unit + 1 < units.length) value /= base, ++unit;
  const size = Math.abs(value);
  const digits = size >= 99.95 || (unit === 0 && Number.isInteger(value)) ? 0 : size >= 9.995 ? 1 : 2;
  return value.toFixed(digits) + ' ' + units[unit];
}

const isNumber = (value) => typeof value === 'number' && Number.isFinite(value);
const bytesText = (value) => isNumber(value) ? scaled(value, ['B', 'kB', 'MB', 'GB', 'TB']) : value ? String(value) : '?';
const countText = (value) => isNumber(value) ? scaled(value, ['', 'k', 'M', 'G', 'T', 'P']).trim() : value ? shown(value, 60) : '?';
const percentText = (share) => isNumber(share) ? (share * 100).toFixed(share >= 0.0995 ? 1 : 2) + ' %' : '';

function timeText(seconds) {
  if (!isNumber(seconds)) return '';
  if (seconds === 0) return '0';
  if (seconds < 0.9995e-6) return scaled(seconds * 1e9, ['ns']);
  if (seconds < 0.9995e-3) return scaled(seconds * 1e6, ['µs']);
  if (seconds < 0.9995) return scaled(seconds * 1e3, ['ms']);
  return scaled(seconds, ['s']);
}

const rateText = (amount, seconds, unit) => amount > 0 && seconds > 0 ? scaled(amount / seconds / 1e9, [unit]) : '';
const plural = (count, what) => count.toLocaleString('en') + ' ' + what + (count === 1 ? '' : 's');
const sum = (list) => list.reduce((total, value) => total + value, 0);
const largest = (list) => list.reduce((most, value) => Math.max(most, value), 0);

// ---- what follows from the data

const stepSeconds = sum(nodes.map((node) => node.seconds || 0));
nodes.forEach((node, number) => {
  node.number = number;
  node.share = hasTimes && stepSeconds > 0 ? node.seconds / stepSeconds : null;
  node.memory = sum(node.outputs.map((t) => tensors[t].bytes || 0));
  node.block = -1;
  const errors = node.outputs.map((t) => errorOf(tensors[t].name)).filter(isNumber);
  node.error = errors.length ? largest(errors) : null;
});
tensors.forEach((tensor, number) => { tensor.number = number; tensor.readers = []; });
nodes.forEach((node) => new Set(node.inputs).forEach((t) => tensors[t].readers.push(node.number)));

function errorOf(name) {
  if (!data.errors || !Object.prototype.hasOwnProperty.call(data.errors, name)) return null;
  return data.errors[name].error;
}

// Sums of blocks, the innermost first: a block comes before those in it.
for (let i = blocks.length - 1; i >= 0; --i) {
  const block = blocks[i];
  Object.assign(block, {number: i, nodes: [], seconds: 0, flops: 0, bytes: 0, memory: 0, error: null});
  const own = block.children.filter((child) => child.node !== undefined).map((child) => nodes[child.node]);
  if (block.node !== undefined) own.push(nodes[block.node]);
  for (const node of own) {
    if (node.block < 0) node.block = i;
    block.nodes.push(node.number);
    block.seconds += node.seconds || 0;
    block.flops += isNumber(node.flops) ? node.flops : 0;
    block.bytes += isNumber(node.bytes) ? node.bytes : 0;
    block.memory = Math.max(block.memory, node.memory);
    if (node.error !== null) block.error = Math.max(block.error || 0, node.error);
  }
  for (const child of block.children) {
    if (child.block === undefined) continue;
    const inner = blocks[child.block];
    block.nodes.push(...inner.nodes);
    for (const key of ['seconds', 'flops', 'bytes']) block[key] += inner[key];
    block.memory = Math.max(block.memory, inner.memory);
    if (inner.error !== null) block.error = Math.max(block.error || 0, inner.error);
  }
  block.share = stepSeconds > 0 ? block.seconds / stepSeconds : null;
}
blocks.forEach((block) => {
  const names = new Map();
  block.nodes.forEach((n) => names.set(nodes[n].op, (names.get(nodes[n].op) || 0) + 1));
  block.operators = [...names].sort((a, b) => b[1] - a[1]);
  block.path = block.parent > 0 ? blocks[block.parent].path + ' › ' + block.label : block.label;
  // In order of their sizes and operators: blocks that look alike have the same.
  block.likeness = block.operators.map(([op, count]) => op + '×' + count).join(' ');
});

const nodeName = (node) => node.name ? node.name : node.text;
const kindColours = ['--c0', '--c1', '--c2', '--c3', '--c4', '--c5', '--c6', '--c7'].map((name) => `var(${name})`);
const restColour = 'var(--rest)';
const heat = (part) => `color-mix(in oklab, var(--hot) ${Math.round(Math.max(0, Math.min(1, part)) * 100)}%, var(--cool))`;

// A colour for each of the names, most important first; what comes after eight is grey.
function colours(names) {
  const map = new Map();
  names.forEach((name) => { if (!map.has(name)) map.set(name, kindColours[map.size] || restColour); });
  return map;
}

const operatorTotals = (() => {
  const totals = new Map();
  for (const node of nodes) {
    if (node.idle) continue;
    const key = node.op + '\n' + node.provider;
    const entry = totals.get(key) || {op: node.op, provider: node.provider, nodes: 0, calls: 0, seconds: 0, flops: 0, bytes: 0};
    entry.nodes += 1;
    entry.calls += node.calls || 0;
    entry.seconds += node.seconds || 0;
    entry.flops += isNumber(node.flops) ? node.flops : 0;
    entry.bytes += isNumber(node.bytes) ? node.bytes : 0;
    totals.set(key, entry);
  }
  return [...totals.values()].sort((a, b) => b.seconds - a.seconds || b.nodes - a.nodes);
})();
const operatorColours = colours(operatorTotals.map((entry) => entry.op));

// ---- the tip beside the pointer

const tip = document.getElementById('tip');

function showTip(event, title, lines) {
  tip.replaceChildren(element('b', {}, shown(title, 160)), ...lines.filter(Boolean).map((line) => element('div', {}, shown(line, 240))));
  tip.hidden = false;
  const room = 14, box = tip.getBoundingClientRect();
  const left = event.clientX + room + box.width > innerWidth ? event.clientX - room - box.width : event.clientX + room;
  const top = event.clientY + room + box.height > innerHeight ? event.clientY - room - box.height : event.clientY + room;
  tip.style.left = Math.max(4, left) + 'px';
  tip.style.top = Math.max(4, top) + 'px';
}

function hideTip() { tip.hidden = true; }

function withTip(made, lines) {
  made.addEventListener('pointermove', (event) => { const [title, ...rest] = lines(); showTip(event, title, rest); });
  made.addEventListener('pointerleave', hideTip);
  return made;
}

function nodeLines(node) {
  return [
    node.op + (node.was ? ' (was ' + node.was + ')' : ''), nodeName(node),
    hasTimes && !node.idle ? timeText(node.seconds) + ' · ' + percentText(node.share) : '',
    node.flops > 0 && node.seconds > 0 ? rateText(node.flops, node.seconds, 'GFLOP/s') + ' · ' + rateText(node.bytes, node.seconds, 'GB/s') : '',
    node.outputs.map((t) => tensors[t].type).join(', '), node.kernel ? node.provider + ': ' + node.kernel : '',
  ];
}

// ---- what is chosen: a node or a block, in every view

const listeners = [];
const chosen = {node: -1, block: -1, tensor: -1};
function choose(what, from) {
  Object.assign(chosen, {node: -1, block: -1, tensor: -1}, what);
  listeners.forEach((listener) => listener(from));
}

function section(id, lead) {
  const place = document.getElementById(id);
  if (lead) place.append(element('p', {class: 'lead'}, lead));
  return place;
}

function dropSection(id) { document.getElementById(id).remove(); }

// ---- overview

function showOverview() {
  const model = data.model, session = data.session;
  document.title = shown(model.file, 80) + ' · Tenon report';
  document.getElementById('model-name').textContent = shown(model.file, 200);
  const graphName = model.graph ? 'graph ' + shown(model.graph, 80) + ' · ' : '';
  document.getElementById('subtitle').textContent =
      `${graphName}${plural(session.threads, 'thread')} · level ${session.level} · ${session.providers.join(', ')} · ${data.machine.cpu}`;
  const place = section('overview');
  const running = nodes.filter((node) => !node.idle).length;
  const times = [...data.runs].sort((a, b) => a - b), middle = times[Math.floor(times.length / 2)];
  const flops = sum(nodes.map((node) => isNumber(node.flops) ? node.flops : 0));
  const cards = [];
  const card = (value, label, more) => cards.push(element('div', {class: 'card'}, withUnit(value),
      element('div', {class: 'label'}, label), element('div', {class: 'more'}, more || '')));
  if (hasTimes) {
    card(timeText(middle), 'per run, median', `${plural(times.length, 'run')}, ${timeText(times[0])} to ${timeText(times[times.length - 1])}`);
    card(scaled(flops / middle / 1e9, ['GFLOP/s']), 'computed', data.machine.peaks ? percentText(flops / middle / 1e9 / data.machine.peaks.gflops) + ' of this machine’s peak' : '');
  }
  card(countText(flops), 'FLOPs per run', 'an estimate');
  card(running.toLocaleString('en'), 'nodes run', model.nodes.toLocaleString('en') + ' in the file');
  card(countText(model.parameters), 'parameters', bytesText(model.parameter_bytes) + ' in the file');
  card(bytesText(session.weight_bytes), 'weights in memory', 'as kernels read them');
  card(bytesText(data.memory.arena_bytes), 'arena', hasTimes ? bytesText(session.peak_bytes) + ' at most in runs' : 'planned');
  card(String(data.rewrites.length), 'rewrites', 'by the optimiser');
  place.append(element('div', {class: 'cards'}, ...cards));

  const values = (list) => {
    const made = element('div');
    list.forEach((value) => made.append(element('div', {}, `${shown(value.name, 120)}: ${value.type}${value.shape ? ' [' + shown(value.shape.join(', '), 120) + ']' : ''}`)));
    return made;
  };
  const about = facts([
    ['inputs', values(model.inputs)], ['outputs', values(model.outputs)],
    ['run with', data.inputs.values.map((input) => shown(input.name, 80) + ' = ' + input.value).join('; ')],
    ['opsets', model.opsets.map((opset) => opset.domain + ' ' + opset.version).join(', ')],
    ['made by', [model.producer, model.producer_version].filter(Boolean).join(' ')],
    ['file', bytesText(model.file_bytes) + ', IR version ' + model.ir_version],
    ['loaded in', timeText(session.load_seconds)],
    ['description', [model.doc, model.graph_doc].filter(Boolean).join('\n')],
    ...model.metadata.map((entry) => [shown(entry.key, 40), entry.value]),
  ]);
  const notes = element('ul', {class: 'notes'}, ...data.notes.map((note) => element('li', {}, shown(note, 500))));
  place.append(element('div', {class: 'columns'},
      element('div', {class: 'panel padded'}, about),
      data.notes.length ? element('div', {class: 'panel padded'}, element('h3', {}, 'Worth knowing'), notes) : null));
  document.getElementById('footer').textContent = `Made by Tenon ${data.tenon}. This page holds all its data and asks the network for nothing.`;
}

function withUnit(text) {
  const [amount, unit] = text.split(' ');
  return element('div', {class: 'value'}, amount, unit ? element('small', {}, ' ' + unit) : null);
}

function showNavigation() {
  const list = element('ul');
  document.querySelectorAll('main section').forEach((part) => {
    list.append(element('li', {}, element('a', {href: '#' + part.id}, part.querySelector('h2').textContent)));
  });
  document.getElementById('nav').append(list);
}

// ---- light or dark

const options = new Set(location.hash.slice(1).split('&'));
function setTheme(dark) { document.documentElement.classList.toggle('dark', dark); }
setTheme(options.has('dark') || (!options.has('light') && matchMedia('(prefers-color-scheme: dark)').matches));
document.getElementById('theme').addEventListener('click', () => setTheme(!document.documentElement.classList.contains('dark')));
