
// ---- charts

// Round numbers that divide [0, most] into some five parts.
function ticks(most, parts = 5) {
  if (!(most > 0)) return [0];
  const rough = most / parts, power = Math.pow(10, Math.floor(Math.log10(rough)));
  const step = [1, 2, 5, 10].map((factor) => factor * power).find((size) => size >= rough) || rough;
  const list = [];
  for (let at = 0; at <= most * 1.0001; at += step) list.push(at);
  return list;
}

// A chart that is drawn again when its width changes.
function chart(place, height, draw) {
  const svg = drawn('svg', {class: 'chart', height});
  place.append(svg);
  let last = 0;
  const redraw = () => {
    const width = Math.round(svg.getBoundingClientRect().width) || 1000;
    last = width;
    svg.setAttribute('viewBox', `0 0 ${width} ${height}`);
    svg.replaceChildren(...draw(width, height));
  };
  new ResizeObserver(() => { if (Math.round(svg.getBoundingClientRect().width) !== last) redraw(); }).observe(svg);
  redraw();
  return redraw;
}

function line(x1, y1, x2, y2, kind) { return drawn('line', {x1, y1, x2, y2, class: kind}); }
function label(x, y, text, anchor = 'start', kind = '') { return drawn('text', {x, y, 'text-anchor': anchor, class: kind}, text); }

// ---- timeline

// Steps in rows: those that ran side by side by thread, those of bodies below their node.
function rowsOf(steps) {
  const sorted = steps.map(([node, start, duration, thread]) => ({node, start, duration, end: start + duration, thread, row: 0}))
      .sort((a, b) => a.start - b.start || b.duration - a.duration);
  const open = [];
  for (const step of sorted) {
    while (open.length && open[open.length - 1].end <= step.start + 1e-9) open.pop();
    step.row = step.thread > 0 ? step.thread - 1 : open.length;
    if (step.thread === 0) open.push(step);
  }
  return sorted;
}

function showTimeline() {
  if (!data.timeline) return dropSection('timeline');
  const place = section('timeline', `Run ${data.timeline.run} of ${data.runs.length}, the fastest, step by step. Drag to move; Ctrl or ⌘ and wheel, or the buttons, to zoom; click a step to see it in the graph.`);
  const steps = rowsOf(data.timeline.steps), whole = data.timeline.microseconds;
  const rows = Math.min(12, 1 + largest(steps.map((step) => step.row)));
  const range = {from: 0, to: whole};
  const left = 16, rowHeight = 34, top = 26;
  let width = 1000;
  const holder = element('div', {class: 'padded'});
  const redraw = (() => {
    const make = (w) => {
      width = w;
      const scale = (w - 2 * left) / (range.to - range.from), x = (t) => left + (t - range.from) * scale;
      const parts = [];
      for (const t of ticks(range.to - range.from, Math.max(3, Math.floor(w / 160)))) {
        parts.push(line(x(range.from + t), top - 4, x(range.from + t), top + rows * rowHeight, 'grid'), label(x(range.from + t), 14, timeText((range.from + t) * 1e-6) || '0', 'middle'));
      }
      let drawnTo = Array(rows).fill(-1);
      for (const step of steps) {
        if (step.end < range.from || step.start > range.to || step.row >= rows) continue;
        const begin = Math.max(left, x(step.start)), end = Math.min(w - left, x(step.end));
        if (end - drawnTo[step.row] < 0.35) continue;
        drawnTo[step.row] = end;
        parts.push(drawStep(step, begin, end, top + step.row * rowHeight));
      }
      return parts;
    };
    return () => make;
  })();
  const drawStep = (step, begin, end, y) => {
    const node = nodes[step.node], size = Math.max(0.6, end - begin - (end - begin > 3 ? 1 : 0));
    const group = drawn('g', {onclick: () => choose({node: step.node}, 'chart')}, drawn('rect', {x: begin, y, width: size, height: rowHeight - 6, rx: Math.min(3, size / 3), class: 'bar', fill: tint(operatorColours.get(node.op) || restColour)}));
    const letters = Math.floor((size - 8) / 7), name = shown(node.op, 60);
    if (letters >= Math.min(name.length, 7)) group.append(label(begin + 5, y + 18, name.length > letters ? name.slice(0, letters - 1) + '…' : name, 'start', 'on-bar'));
    return withTip(group, () => [node.op, nodeName(node), `${timeText(step.duration * 1e-6)} from ${timeText(step.start * 1e-6) || '0'} on`, node.outputs.map((t) => tensors[t].type).join(', ')]);
  };
  let again = () => {};
  const zoom = (factor, at = (range.from + range.to) / 2) => {
    const size = Math.min(whole, Math.max(whole / 5000, (range.to - range.from) / factor));
    const share = (at - range.from) / (range.to - range.from);
    move(at - share * size, size);
  };
  const move = (from, size) => {
    range.from = Math.max(0, Math.min(whole - size, from));
    range.to = range.from + size;
    again();
  };
  const button = (text, action) => element('button', {type: 'button', onclick: action}, text);
  const legend = element('div', {class: 'legend'}, ...[...operatorColours].slice(0, 8).map(([op, colour]) => {
    const mark = element('i');
    mark.style.background = tint(colour);
    return element('span', {}, mark, op);
  }));
  place.append(element('div', {class: 'panel'}, element('div', {class: 'tools'}, legend, element('span', {class: 'grow'}),
      button('−', () => zoom(1 / 1.6)), button('+', () => zoom(1.6)), button('all', () => move(0, whole))), holder));
  again = chart(holder, top + rows * rowHeight + 4, redraw());
  const svg = holder.querySelector('svg');
  const time = (event) => range.from + (event.clientX - svg.getBoundingClientRect().left - left) / (width - 2 * left) * (range.to - range.from);
  svg.addEventListener('wheel', (event) => {
    if (!event.ctrlKey && !event.metaKey) return;
    event.preventDefault();
    zoom(Math.exp(-event.deltaY * 0.002), time(event));
  }, {passive: false});
  let start = null;
  svg.addEventListener('pointerdown', (event) => { start = {x: event.clientX, from: range.from}; });
  addEventListener('pointermove', (event) => { if (start) move(start.from - (event.clientX - start.x) / (width - 2 * left) * (range.to - range.from), range.to - range.from); });
  addEventListener('pointerup', () => { start = null; });
}

// ---- memory

function showMemory() {
  const memory = data.memory, count = Math.max(1, memory.in_stages ? 1 + largest(memory.blocks.map((block) => block.last)) : memory.steps.length);
  const inArena = memory.blocks.filter((block) => block.offset !== undefined);
  const live = Array(count).fill(0), used = Array(count).fill(0);
  for (const block of memory.blocks) {
    for (let i = Math.max(0, block.first); i <= Math.min(count - 1, block.last); ++i) {
      live[i] += block.bytes;
      if (block.offset !== undefined) used[i] += block.bytes;
    }
  }
  const most = largest(live), at = live.indexOf(most), wasted = memory.arena_bytes > 0 ? 1 - largest(used) / memory.arena_bytes : 0;
  const what = memory.in_stages ? 'stage' : 'step';
  const place = section('memory', `The plan for these inputs: one arena of ${bytesText(memory.arena_bytes)} holds the tensors between nodes, each for as long as something reads it` +
      `${memory.arena_bytes > 0 ? ` (at its fullest it is ${percentText(1 - wasted)} full)` : ''}. Beside it are ${bytesText(data.session.weight_bytes)} of weights, and the outputs. ` +
      'Tensors whose size only a run can tell are not in the plan.');
  if (!memory.blocks.length) return;
  const holder = element('div', {class: 'panel padded'});
  place.append(holder);
  const left = 78, right = 14;
  const xOf = (w) => (step) => left + step / count * (w - left - right);
  const nodeOf = (step) => memory.in_stages ? null : nodes[memory.steps[step]];
  const stepTitle = (step) => { const node = nodeOf(step); return node ? `${node.op} ${nodeName(node)}` : `${what} ${step}`; };
  const tensorNames = (list) => list.slice(0, 4).map((t) => tensors[t].name + '  ' + tensors[t].type);

  holder.append(element('h3', {}, `In use, ${what} by ${what}`));
  const top = Math.max(most, memory.arena_bytes);
  chart(holder, 190, (w, h) => {
    const x = xOf(w), y = (bytes) => h - 24 - bytes / top * (h - 44), parts = [];
    ticks(top, 4).forEach((t) => parts.push(line(left, y(t), w - right, y(t), 'grid'), label(left - 8, y(t) + 4, bytesText(t), 'end')));
    const area = (list) => {
      let path = `M${x(0)} ${y(0)}`;
      list.forEach((bytes, i) => { path += `L${x(i)} ${y(bytes)}L${x(i + 1)} ${y(bytes)}`; });
      return path + `L${x(count)} ${y(0)}Z`;
    };
    parts.push(drawn('path', {d: area(live), class: 'area', fill: tint('var(--c2)')}), drawn('path', {d: area(used), class: 'area', fill: tint('var(--c0)')}));
    parts.push(line(left, y(memory.arena_bytes), w - right, y(memory.arena_bytes), 'limit'), label(w - right, y(memory.arena_bytes) - 5, 'arena ' + bytesText(memory.arena_bytes), 'end', 'label'));
    const reach = drawn('rect', {x: left, y: 0, width: w - left - right, height: h - 24, fill: 'transparent'});
    reach.addEventListener('pointermove', (event) => {
      const step = Math.max(0, Math.min(count - 1, Math.floor((event.clientX - reach.getBoundingClientRect().left) / (w - left - right) * count)));
      showTip(event, stepTitle(step), [`${what} ${step + 1} of ${count}`, bytesText(used[step]) + ' of the arena', live[step] > used[step] ? bytesText(live[step] - used[step]) + ' beside it' : '']);
    });
    reach.addEventListener('pointerleave', hideTip);
    parts.push(reach, label(left, h - 6, `first ${what}`), label(w - right, h - 6, `last ${what}`, 'end'));
    return parts;
  });
  const legend = element('div', {class: 'legend'});
  [['in the arena', 'var(--c0)'], ['beside it: outputs of the model', 'var(--c2)']].forEach(([name, colour]) => {
    const mark = element('i');
    mark.style.background = tint(colour);
    legend.append(element('span', {}, mark, name));
  });
  legend.append(element('span', {}, `most at ${what} ${at + 1}: ${bytesText(most)}, ${shown(stepTitle(at), 80)}`));
  holder.append(legend);
  if (!inArena.length) return;

  holder.append(element('h3', {}, 'The arena: where each tensor lies, and how long'));
  const largestBlock = largest(inArena.map((block) => block.bytes));
  chart(holder, 300, (w, h) => {
    const x = xOf(w), y = (bytes) => h - 24 - bytes / memory.arena_bytes * (h - 34), parts = [];
    ticks(memory.arena_bytes, 5).forEach((t) => parts.push(line(left, y(t), w - right, y(t), 'grid'), label(left - 8, y(t) + 4, bytesText(t), 'end')));
    for (const block of inArena) {
      const height = y(block.offset) - y(block.offset + block.bytes);
      const made = drawn('rect', {x: x(block.first), y: y(block.offset + block.bytes), width: Math.max(0.8, x(Math.min(count, block.last + 1)) - x(block.first) - 0.5), height: Math.max(0.6, height - (height > 3 ? 0.5 : 0)),
        class: 'bar', fill: heat(0.15 + 0.85 * block.bytes / largestBlock)});
      made.addEventListener('click', () => { if (block.tensors.length) choose(tensors[block.tensors[0]].producer !== undefined ? {node: tensors[block.tensors[0]].producer} : {tensor: block.tensors[0]}, 'chart'); });
      parts.push(withTip(made, () => [bytesText(block.bytes) + ` at ${bytesText(block.offset)}`, ...tensorNames(block.tensors), block.tensors.length > 4 ? `and ${block.tensors.length - 4} more` : '',
        `${what}s ${block.first + 1} to ${block.last + 1}`]));
    }
    parts.push(label(left, h - 6, `first ${what}`), label(w - right, h - 6, `last ${what}`, 'end'));
    return parts;
  });
}

// ---- roofline

function showRoofline() {
  const peaks = data.machine.peaks;
  const points = nodes.filter((node) => node.flops > 0 && node.bytes > 0 && node.seconds > 0)
      .map((node) => ({node, x: node.flops / node.bytes, y: node.flops / node.seconds / 1e9}));
  if (!peaks || !points.length) return dropSection('roofline');
  const place = section('roofline', `Each node by the work it does per byte that it reads and writes (an estimate) and by what it achieved; larger dots take more time. The roof is what this machine was measured to do with ${plural(peaks.threads, 'thread')}: ` +
      `${scaled(peaks.gflops, ['GFLOP/s'])} multiplying and adding float32 in registers (${scaled(peaks.product_gflops, ['GFLOP/s'])} in a matrix product), ${scaled(peaks.memory_gbs, ['GB/s'])} from and to memory. Nodes whose data is still in a cache can be above the slope.`);
  const holder = element('div', {class: 'panel padded'});
  place.append(holder);
  const log = Math.log10, ridge = peaks.gflops / peaks.memory_gbs;
  const bounds = (list, extra) => [Math.floor(log(Math.min(...list, ...extra))), Math.ceil(log(Math.max(...list, ...extra)))];
  const [x0, x1] = bounds(points.map((p) => p.x), [ridge / 10, ridge * 10]), [low, y1] = bounds(points.map((p) => p.y), [peaks.gflops * 1.2]);
  const y0 = Math.max(low, y1 - 5), mostTime = largest(points.map((p) => p.node.seconds));
  chart(holder, 440, (w, h) => {
    const left = 64, right = 18, top = 14, bottom = 44, parts = [];
    const x = (v) => left + (log(v) - x0) / (x1 - x0) * (w - left - right), y = (v) => h - bottom - (Math.max(log(v), y0) - y0) / (y1 - y0) * (h - top - bottom);
    const power = (p) => p >= 0 && p < 5 ? Math.pow(10, p).toLocaleString('en') : p < 0 && p > -4 ? Math.pow(10, p).toFixed(-p) : '1e' + p;
    for (let p = x0; p <= x1; ++p) parts.push(line(x(10 ** p), top, x(10 ** p), h - bottom, 'grid'), label(x(10 ** p), h - bottom + 17, power(p), 'middle'));
    for (let p = y0; p <= y1; ++p) parts.push(line(left, y(10 ** p), w - right, y(10 ** p), 'grid'), label(left - 8, y(10 ** p) + 4, power(p), 'end'));
    parts.push(label((left + w - right) / 2, h - 8, 'FLOPs per byte', 'middle'), drawn('text', {x: 16, y: h / 2, transform: `rotate(-90 16 ${h / 2})`, 'text-anchor': 'middle'}, 'GFLOP/s'));
    const start = Math.max(10 ** x0, 10 ** y0 / peaks.memory_gbs);
    parts.push(drawn('path', {class: 'roof', d: `M${x(start)} ${y(start * peaks.memory_gbs)}L${x(ridge)} ${y(peaks.gflops)}L${w - right} ${y(peaks.gflops)}`}));
    parts.push(label(w - right - 4, y(peaks.gflops) - 7, scaled(peaks.gflops, ['GFLOP/s']), 'end', 'label'));
    for (const point of [...points].sort((a, b) => b.node.seconds - a.node.seconds)) {
      const made = drawn('circle', {class: 'dot', cx: x(point.x), cy: y(point.y), r: 2.5 + 10 * Math.sqrt(point.node.seconds / mostTime), fill: `color-mix(in srgb, ${operatorColours.get(point.node.op) || restColour} 78%, transparent)`,
        onclick: () => choose({node: point.node.number}, 'chart')});
      const roof = Math.min(peaks.gflops, point.x * peaks.memory_gbs);
      parts.push(withTip(made, () => [...nodeLines(point.node), `${point.x.toPrecision(3)} FLOPs per byte · ${percentText(point.y / roof)} of the roof`]));
    }
    return parts;
  });
  const inPlot = new Set(points.map((p) => p.node.op));
  holder.append(element('div', {class: 'legend'}, ...[...operatorColours].filter(([op]) => inPlot.has(op)).slice(0, 9).map(([op, colour]) => {
    const mark = element('i');
    mark.style.background = colour;
    return element('span', {}, mark, op);
  })));
}
