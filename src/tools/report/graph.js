
// ---- the graph: blocks that open where they are

const opened = new Set([0]);
const colourModes = {};

function setUpColours() {
  const ofNodes = (key) => colours([...new Set(nodes.filter((node) => !node.idle).map((node) => node[key]))].sort((a, b) =>
    nodes.filter((node) => node[key] === b).length - nodes.filter((node) => node[key] === a).length));
  const kinds = (name, key) => {
    const map = ofNodes(key);
    colourModes[key] = {name, kinds: map, of: (what) => {
      const list = what.nodes ? what.nodes.map((n) => nodes[n][key]) : [what[key]];
      const first = list[0];
      return list.every((entry) => entry === first) ? tint(map.get(first)) : 'var(--cool)';
    }, text: (what) => what.nodes ? [...new Set(what.nodes.map((n) => nodes[n][key]))].join(', ') : what[key]};
  };
  if (hasTimes) colourModes.time = {name: 'time', value: (what) => what.share || 0, text: (what) => percentText(what.share) + ' of time'};
  colourModes.memory = {name: 'memory', value: (what) => what.memory, text: (what) => bytesText(what.memory)};
  colourModes.flops = {name: 'FLOPs', value: (what) => isNumber(what.flops) ? what.flops : 0, text: (what) => countText(what.flops || 0) + ' FLOPs'};
  kinds('provider', 'provider');
  kinds('precision', 'precision');
  colourModes.op = {name: 'operator', kinds: operatorColours, of: (what) => what.nodes ? 'var(--cool)' : tint(operatorColours.get(what.op)), text: () => ''};
  if (data.errors) {
    // From 1e-8, which is nothing, to 1.
    colourModes.error = {name: 'error', fixed: true, text: (what) => what.error === null ? 'no error known' : 'error ' + what.error.toExponential(1),
      value: (what) => what.error > 0 ? Math.max(0, Math.min(1, 1 + Math.log10(what.error) / 8)) : 0};
  }
}

const tint = (colour) => `color-mix(in oklab, ${colour} 58%, var(--cool))`;

// Moves coordinates apart where something needs more room than the layout has for it. `needs`: [from, to, room].
function stretcher(needs) {
  const stretches = [];
  const map = (t) => {
    let moved = t;
    for (const [from, to, extra] of stretches) moved += extra * Math.max(0, Math.min(1, (t - from) / (to - from)));
    return moved;
  };
  for (const [from, to, room] of [...needs].sort((a, b) => a[0] - b[0])) {
    const missing = room - (map(to) - map(from));
    if (missing > 0) stretches.push([from, to, missing]);
  }
  return map;
}

const frameTop = 26, frameSide = 14;

// The picture of a block with those in it that are open: boxes and curves, from its upper left corner.
function arrange(number) {
  const block = blocks[number];
  const inner = block.children.map((child) => child.block !== undefined && opened.has(child.block) ? arrange(child.block) : null);
  const needs = (axis) => {
    const list = [];
    block.children.forEach((child, i) => {
      if (!inner[i]) return;
      const centre = child.box[axis], half = child.box[axis + 2] / 2;
      list.push([centre - half, centre + half, axis === 0 ? inner[i].width : inner[i].height]);
    });
    return list;
  };
  const mapX = stretcher(needs(0)), mapY = stretcher(needs(1));
  const boxes = block.children.map((child, i) => {
    const [x, y, width, height] = child.box;
    if (!inner[i]) return {child, x: mapX(x), y: mapY(y), width, height};
    const middle = (map, centre, size) => (map(centre - size / 2) + map(centre + size / 2)) / 2;
    return {child, x: middle(mapX, x, width), y: middle(mapY, y, height), width: inner[i].width, height: inner[i].height, inner: inner[i]};
  });
  const curves = block.arrows.map((arrow) => {
    const points = [];
    for (let i = 0; i < arrow.points.length; i += 2) points.push([mapX(arrow.points[i]), mapY(arrow.points[i + 1])]);
    const attach = (end, at, near) => {
      if (end < 0) return;
      const box = boxes[end], [x, y, width, height] = block.children[end].box, was = arrow.points.slice(at * 2, at * 2 + 2);
      const dx = was[0] - x, dy = was[1] - y;
      const isBeside = Math.abs(dx) * height > Math.abs(dy) * width * 1.02;
      const to = isBeside ? [box.x + Math.sign(dx) * box.width / 2, box.y + dy] : [box.x + dx, box.y + Math.sign(dy) * box.height / 2];
      const moved = [to[0] - points[at][0], to[1] - points[at][1]];
      points[at] = to;
      points[near] = [points[near][0] + moved[0], points[near][1] + moved[1]];
    };
    if (points.length > 1) {
      attach(arrow.from, 0, 1);
      attach(arrow.to, points.length - 1, points.length - 2);
    }
    return {arrow, points};
  });
  const isFrame = number !== 0;
  return {number, boxes, curves, left: isFrame ? frameSide : 0, top: isFrame ? frameTop : 0,
    width: mapX(block.width) + (isFrame ? 2 * frameSide : 0), height: mapY(block.height) + (isFrame ? frameTop + frameSide : 0)};
}

class GraphView {
  constructor(place) {
    this.mode = hasTimes ? 'time' : 'op';
    this.view = {x: 0, y: 0, scale: 1};
    this.hits = new Set();
    this.legend = element('div', {class: 'legend'});
    this.scene = drawn('g');
    this.svg = drawn('svg', {class: 'picture', tabindex: 0, role: 'img', 'aria-label': 'the graph of the model'}, this.scene);
    this.map = drawn('svg', {class: 'overview-map', width: 120, height: 150});
    this.details = element('div', {class: 'details'});
    this.canvas = element('div', {class: 'canvas'}, this.svg, this.map,
        element('div', {class: 'hint'}, 'drag to move · Ctrl or ⌘ and wheel to zoom (after a click, the wheel alone) · click a block to open it · •– comes from elsewhere'));
    place.append(element('div', {class: 'panel'}, this.makeTools(), element('div', {class: 'viewer'}, this.canvas, this.details)));
    this.listen();
    openWhatFits();
    this.draw();
    this.start();
    this.showDetails();
    listeners.push((from) => { if (from !== 'graph') this.reveal(); this.draw(); this.showDetails(); });
  }

  makeTools() {
    const modes = element('select', {'aria-label': 'colour by', onchange: (event) => { this.mode = event.target.value; this.draw(); }});
    Object.entries(colourModes).forEach(([key, mode]) => modes.append(element('option', {value: key}, 'colour by ' + mode.name)));
    modes.value = this.mode;
    this.modes = modes;
    const button = (text, title, action) => element('button', {type: 'button', title, onclick: action}, text);
    return element('div', {class: 'tools'}, this.makeSearch(), modes, this.legend, element('span', {class: 'grow'}),
        button('open all', 'open blocks, up to 400 boxes', () => { openUpTo(400); this.draw(); this.fit(); }),
        button('fold all', 'close every block', () => { opened.clear(); opened.add(0); openWhatFits(); this.draw(); this.start(); }),
        button('−', 'zoom out', () => this.zoom(1 / 1.3)), button('+', 'zoom in', () => this.zoom(1.3)),
        button('fit', 'show all of it', () => this.fit()));
  }

  makeSearch() {
    const results = element('ul', {hidden: ''});
    const input = element('input', {type: 'search', placeholder: 'find a node, operator or tensor', 'aria-label': 'search'});
    const search = () => {
      const found = findNodes(input.value);
      this.hits = new Set(found.map((entry) => entry.node));
      results.hidden = !found.length;
      results.replaceChildren(...found.slice(0, 40).map((entry) => element('li', {onclick: () => { results.hidden = true; choose({node: entry.node}); }},
          nodes[entry.node].op + ' ', element('small', {}, shown(entry.why, 80)))));
      if (found.length > 40) results.append(element('li', {}, element('small', {}, `and ${found.length - 40} more`)));
      this.draw();
    };
    input.addEventListener('input', search);
    input.addEventListener('keydown', (event) => {
      if (event.key === 'Enter' && this.hits.size) { results.hidden = true; choose({node: [...this.hits][0]}); }
      if (event.key === 'Escape') { input.value = ''; search(); }
    });
    document.addEventListener('click', (event) => { if (!box.contains(event.target)) results.hidden = true; });
    const box = element('div', {class: 'found'}, input, results);
    this.searchInput = input;
    return box;
  }

  listen() {
    const svg = this.svg;
    let start = null;
    svg.addEventListener('pointerdown', (event) => { start = {x: event.clientX, y: event.clientY, view: {...this.view}, moved: false}; });
    addEventListener('pointermove', (event) => {
      if (!start) return;
      const dx = event.clientX - start.x, dy = event.clientY - start.y;
      if (Math.abs(dx) + Math.abs(dy) > 4) start.moved = true;
      if (!start.moved) return;
      svg.classList.add('dragging');
      hideTip();
      Object.assign(this.view, {x: start.view.x + dx, y: start.view.y + dy});
      this.place();
    });
    addEventListener('pointerup', (event) => {
      this.dragged = start ? start.moved : false;
      start = null;
      svg.classList.remove('dragging');
      if (!this.canvas.contains(event.target)) svg.classList.remove('active');
      else svg.classList.add('active');
    });
    svg.addEventListener('click', (event) => { if (!this.dragged && event.target === svg) choose({}, 'graph'); });
    svg.addEventListener('wheel', (event) => {
      if (!event.ctrlKey && !event.metaKey && !svg.classList.contains('active')) return;
      event.preventDefault();
      const box = svg.getBoundingClientRect();
      this.zoom(Math.exp(-event.deltaY * (event.deltaMode ? 0.05 : 0.0016)), event.clientX - box.left, event.clientY - box.top);
    }, {passive: false});
    svg.addEventListener('keydown', (event) => {
      const moves = {ArrowLeft: [60, 0], ArrowRight: [-60, 0], ArrowUp: [0, 60], ArrowDown: [0, -60]};
      if (moves[event.key]) {
        event.preventDefault();
        this.view.x += moves[event.key][0];
        this.view.y += moves[event.key][1];
        this.place();
      } else if (event.key === '+' || event.key === '=') this.zoom(1.3);
      else if (event.key === '-') this.zoom(1 / 1.3);
      else if (event.key === 'Escape') svg.classList.remove('active');
    });
    const jump = (event) => {
      const box = this.map.getBoundingClientRect(), size = this.size(), k = this.mapScale;
      if (!k) return;
      this.view.x = size.width / 2 - (event.clientX - box.left) / k * this.view.scale;
      this.view.y = size.height / 2 - (event.clientY - box.top) / k * this.view.scale;
      this.place();
    };
    this.map.addEventListener('pointerdown', jump);
    this.map.addEventListener('pointermove', (event) => { if (event.buttons) jump(event); });
    new ResizeObserver(() => this.place()).observe(this.canvas);
  }

  size() {
    const box = this.svg.getBoundingClientRect();
    return {width: box.width || 800, height: box.height || 600};
  }

  place() {
    this.scene.setAttribute('transform', `translate(${this.view.x} ${this.view.y}) scale(${this.view.scale})`);
    this.placeMap();
  }

  placeMap() {
    const size = this.size(), view = this.view, k = this.mapScale;
    if (!this.frame || !k) return;
    this.frame.setAttribute('x', -view.x / view.scale * k);
    this.frame.setAttribute('y', -view.y / view.scale * k);
    this.frame.setAttribute('width', size.width / view.scale * k);
    this.frame.setAttribute('height', size.height / view.scale * k);
    const fits = this.all.width * view.scale <= size.width && this.all.height * view.scale <= size.height;
    this.map.style.display = fits ? 'none' : '';
  }

  zoom(factor, x, y) {
    const size = this.size(), view = this.view;
    if (x === undefined) x = size.width / 2, y = size.height / 2;
    const scale = Math.max(0.03, Math.min(6, view.scale * factor)), real = scale / view.scale;
    Object.assign(view, {x: x - (x - view.x) * real, y: y - (y - view.y) * real, scale});
    this.place();
  }

  fit() {
    const size = this.size(), room = 24;
    const scale = Math.min((size.width - 2 * room) / this.all.width, (size.height - 2 * room) / this.all.height, 1.25);
    Object.assign(this.view, {scale, x: (size.width - this.all.width * scale) / 2, y: Math.max(room, (size.height - this.all.height * scale) / 2)});
    this.place();
  }

  // All of it if that can be read, else its beginning.
  start() {
    this.fit();
    const readable = 0.62;
    if (this.view.scale >= readable) return;
    const size = this.size();
    Object.assign(this.view, {scale: readable, x: (size.width - this.all.width * readable) / 2, y: 20});
    const first = this.placed.find((box) => box.child.input !== undefined);
    if (first && this.all.width * readable > size.width) this.view.x = size.width / 2 - first.centre[0] * readable;
    this.place();
  }

  // Opens what the chosen is in, and goes there.
  reveal() {
    const block = chosen.node >= 0 ? nodes[chosen.node].block : chosen.block;
    if (block < 0) return;
    for (let at = chosen.node >= 0 ? block : blocks[block].parent; at > 0; at = blocks[at].parent) opened.add(at);
    this.draw();
    const found = this.placed.find((box) => chosen.node >= 0 ? box.child.node === chosen.node || (box.child.block !== undefined && blocks[box.child.block].node === chosen.node) : box.child.block === chosen.block);
    if (!found) return;
    const size = this.size(), scale = Math.max(this.view.scale, 0.8);
    Object.assign(this.view, {scale, x: size.width / 2 - found.centre[0] * scale, y: size.height / 2 - found.centre[1] * scale});
    this.place();
  }

  draw() {
    this.all = arrange(0);
    this.placed = [];
    this.collect(this.all, 0, 0);
    const mode = colourModes[this.mode];
    this.most = mode.value ? (mode.fixed ? 1 : largest(this.placed.filter((box) => !box.inner).map((box) => this.valueOf(box, mode)))) : 0;
    this.scene.replaceChildren(this.drawBlock(this.all, 0, 0));
    this.drawMap();
    this.showLegend(mode);
    this.place();
  }

  collect(picture, left, top) {
    for (const box of picture.boxes) {
      box.centre = [left + box.x, top + box.y];
      this.placed.push(box);
      if (box.inner) this.collect(box.inner, left + box.x - box.width / 2 + box.inner.left, top + box.y - box.height / 2 + box.inner.top);
    }
  }

  whatIs(box) { return box.child.node !== undefined ? nodes[box.child.node] : box.child.block !== undefined ? blocks[box.child.block] : null; }
  valueOf(box, mode) { const what = this.whatIs(box); return what ? mode.value(what) : 0; }

  colourOf(what) {
    const mode = colourModes[this.mode];
    if (mode.of) return mode.of(what);
    return heat(this.most > 0 ? Math.pow(mode.value(what) / this.most, 0.7) : 0);
  }

  drawBlock(picture, left, top) {
    const group = drawn('g', {transform: `translate(${left} ${top})`});
    const marks = new Map();
    for (const {arrow, points} of picture.curves) {
      if (points.length >= 4) group.append(this.drawArrow(arrow, points));
      else if (arrow.to >= 0) marks.set(arrow.to, [...(marks.get(arrow.to) || []), ...arrow.tensors]);
    }
    for (const [child, list] of marks) group.append(this.drawMark(picture.boxes[child], list));
    for (const box of picture.boxes) group.append(box.inner ? this.drawFrame(box) : this.drawBox(box));
    return group;
  }

  drawArrow(arrow, points) {
    let path = `M${points[0][0]} ${points[0][1]}`;
    for (let i = 1; i + 2 < points.length; i += 3) path += `C${points.slice(i, i + 3).map((p) => p.join(' ')).join(' ')}`;
    const end = points[points.length - 1], before = points[points.length - 2];
    const angle = Math.atan2(end[1] - before[1], end[0] - before[0]) * 180 / Math.PI;
    const made = drawn('g', {class: arrow.tensors.some((t) => this.isJoined(t)) ? 'joined chosen' : 'joined'}, drawn('path', {class: 'arrow', d: path}), drawn('path', {class: 'arrow-reach', d: path}));
    if (arrow.to >= 0) made.append(drawn('path', {class: 'head', d: 'M1 0L-7 -3.4L-7 3.4Z', transform: `translate(${end[0]} ${end[1]}) rotate(${angle})`}));
    else made.append(drawn('circle', {class: 'port', cx: end[0], cy: end[1], r: 3.5}));
    if (arrow.from < 0) made.append(drawn('circle', {class: 'port', cx: points[0][0], cy: points[0][1], r: 3.5}));
    return withTip(made, () => tensorLines(arrow.tensors));
  }

  // Stands for arrows of which there would be too many.
  drawMark(box, list) {
    const x = box.x - box.width / 2, y = box.inner ? box.y - box.height / 2 + 14 : box.y;
    const made = drawn('g', {class: list.some((t) => this.isJoined(t)) ? 'joined chosen' : 'joined'},
        drawn('path', {class: 'arrow', d: `M${x - 15} ${y}H${x - 3}`}), drawn('circle', {class: 'head', cx: x - 16, cy: y, r: 3}),
        drawn('path', {class: 'arrow-reach', d: `M${x - 19} ${y}H${x}`}));
    return withTip(made, () => tensorLines(list, 'from elsewhere'));
  }

  isJoined(t) { return t === chosen.tensor || (chosen.node >= 0 && (tensors[t].producer === chosen.node || nodes[chosen.node].inputs.includes(t))); }

  drawFrame(box) {
    const block = blocks[box.child.block], x = box.x - box.width / 2, y = box.y - box.height / 2;
    const close = (event) => { event.stopPropagation(); if (!this.dragged) this.toggle(block.number, box); };
    const isChosen = chosen.block === block.number;
    return drawn('g', {class: 'frame' + (isChosen ? ' chosen' : '')},
        drawn('rect', {x, y, width: box.width, height: box.height, rx: 10, onclick: close}),
        drawn('text', {x: x + 14, y: y + 19, class: 'name', onclick: close}, '▾ ' + shown(block.label || 'block', Math.max(16, Math.floor(box.width / 8)))),
        this.drawBlock(box.inner, x + box.inner.left, y + box.inner.top));
  }

  drawBox(box) {
    const {child} = box, x = box.x - box.width / 2, y = box.y - box.height / 2;
    const rect = (radius, fill) => drawn('rect', {x, y, width: box.width, height: box.height, rx: radius, fill});
    const text = (words, dy, kind, most = 26) => drawn('text', {x: box.x, y: box.y + dy, class: kind}, shown(words, most));
    if (child.node !== undefined) {
      const node = nodes[child.node];
      const kinds = ['box', chosen.node === child.node ? 'chosen' : '', this.hits.has(child.node) ? 'hit' : ''].join(' ');
      const second = node.outputs.length ? shapeText(tensors[node.outputs[0]].type) : '';
      const made = drawn('g', {class: kinds, 'data-node': child.node, onclick: (event) => { event.stopPropagation(); if (!this.dragged) choose({node: child.node}, 'graph'); }},
          rect(6, this.colourOf(node)), text(node.op, second ? -3 : 4, 'name', 30), second ? text(second, 12, 'small', Math.floor(box.width / 6)) : null);
      return withTip(made, () => [...nodeLines(node), this.modeText(node)]);
    }
    if (child.block !== undefined) {
      const block = blocks[child.block];
      const hit = this.hits.size && block.nodes.some((n) => this.hits.has(n));
      const made = drawn('g', {class: 'box block ' + (chosen.block === child.block ? 'chosen ' : '') + (hit ? 'hit' : ''), 'data-block': child.block,
        onclick: (event) => { event.stopPropagation(); if (!this.dragged) this.toggle(child.block, box); }},
      drawn('rect', {x: x + 4, y: y + 4, width: box.width, height: box.height, rx: 8, fill: 'var(--inset)'}),
      rect(8, this.colourOf(block)), text('▸ ' + (block.label || 'block'), -5, 'name', 24),
      text(plural(block.nodes.length, 'node') + (hasTimes ? ' · ' + percentText(block.share) : ''), 13, 'small', 40));
      return withTip(made, () => [block.path || 'block', plural(block.nodes.length, 'node') + ': ' + block.operators.slice(0, 6).map(([op, count]) => count > 1 ? `${count} ${op}` : op).join(', '),
        hasTimes ? timeText(block.seconds) + ' · ' + percentText(block.share) : '', this.modeText(block)]);
    }
    const tensor = tensors[child.input !== undefined ? child.input : child.output];
    const made = drawn('g', {class: 'box value', onclick: (event) => { event.stopPropagation(); if (!this.dragged) choose({tensor: tensor.number}, 'graph'); }},
        rect(15, null), text((child.input !== undefined ? '' : '') + tensor.name, 4, '', 20));
    return withTip(made, () => [tensor.name, child.input !== undefined ? 'input of the model' : 'output of the model', tensor.type]);
  }

  modeText(what) { return this.mode === 'time' ? '' : colourModes[this.mode].text(what); }

  // The block stays where it is on the screen.
  toggle(number, box) {
    const before = box.centre, top = [before[0], before[1] - box.height / 2];
    if (opened.has(number)) opened.delete(number); else opened.add(number);
    choose({block: number}, 'graph');
    const after = this.placed.find((other) => other.child.block === number);
    if (!after) return;
    this.view.x += (top[0] - after.centre[0]) * this.view.scale;
    this.view.y += (top[1] - (after.centre[1] - after.height / 2)) * this.view.scale;
    hideTip();
    this.place();
  }

  drawMap() {
    const k = Math.min(120 / this.all.width, 150 / this.all.height);
    this.mapScale = k;
    this.map.setAttribute('width', Math.max(8, this.all.width * k));
    this.map.setAttribute('height', Math.max(8, this.all.height * k));
    this.frame = drawn('rect', {fill: 'none', stroke: 'var(--accent)', 'stroke-width': 1.5});
    this.map.replaceChildren(...this.placed.filter((box) => !box.inner).map((box) => {
      const what = this.whatIs(box);
      return drawn('rect', {x: (box.centre[0] - box.width / 2) * k, y: (box.centre[1] - box.height / 2) * k, width: Math.max(1, box.width * k), height: Math.max(1, box.height * k),
        fill: what ? this.colourOf(what) : 'var(--accent)', stroke: 'var(--line-strong)', 'stroke-width': 0.5});
    }), this.frame);
  }

  showLegend(mode) {
    if (mode.kinds) {
      const list = [...mode.kinds].slice(0, 8).map(([name, colour]) => {
        const mark = element('i');
        mark.style.background = tint(colour);
        return element('span', {}, mark, shown(name, 24));
      });
      if (mode.kinds.size > 8) list.push(element('span', {}, 'others grey'));
      this.legend.replaceChildren(...list);
      return;
    }
    const most = this.mode === 'time' ? percentText(this.most) : this.mode === 'memory' ? bytesText(this.most) : mode.fixed ? '1' : countText(this.most);
    this.legend.replaceChildren(element('span', {}, mode.fixed ? '≤ 1e-8' : '0', element('span', {class: 'ramp'}), most));
  }

  showDetails() {
    this.details.replaceChildren(...detailsOf());
  }
}

function tensorLines(list, more = '') {
  const lines = list.slice(0, 5).flatMap((t) => [tensors[t].name, '  ' + tensors[t].type + (isNumber(tensors[t].bytes) ? ' · ' + bytesText(tensors[t].bytes) : '')]);
  return [[plural(list.length, 'tensor'), more].filter(Boolean).join(' '), ...lines, list.length > 5 ? `and ${list.length - 5} more` : ''];
}

const shapeText = (type) => { const at = type.indexOf('['); return at < 0 ? '' : type.slice(at + 1, -1).split(', ').join('×') || 'scalar'; };

function findNodes(text) {
  const words = text.toLowerCase().split(/\s+/).filter(Boolean);
  if (!words.length) return [];
  const matches = (content) => words.every((word) => content.toLowerCase().includes(word));
  const found = [];
  for (const node of nodes) {
    if (node.idle) continue;
    if (matches(`${node.op} ${node.name} ${node.kernel}`)) { found.push({node: node.number, why: nodeName(node)}); continue; }
    const tensor = [...node.outputs, ...node.inputs].find((t) => matches(tensors[t].name));
    if (tensor !== undefined) found.push({node: node.number, why: 'tensor ' + tensors[tensor].name});
  }
  return found;
}

// Opens blocks as long as a screen holds what that shows: all those of a level, or else the largest one while little is
// shown.
function openWhatFits() {
  const most = 36, few = 6;
  for (;;) {
    const folded = shownBlocks(), boxes = shownBoxes();
    if (!folded.length) return;
    const all = boxes - folded.length + sum(folded.map((number) => blocks[number].children.length));
    if (all <= most) folded.forEach((number) => opened.add(number));
    else if (boxes < few) opened.add(folded.reduce((best, number) => blocks[number].nodes.length > blocks[best].nodes.length ? number : best));
    else return;
  }
}

const openBlocks = () => [...opened].filter((number) => { for (let at = number; at > 0; at = blocks[at].parent) { if (!opened.has(at)) return false; } return true; });
const shownBlocks = () => openBlocks().flatMap((number) => blocks[number].children.filter((child) => child.block !== undefined && !opened.has(child.block)).map((child) => child.block));
const shownBoxes = () => sum(openBlocks().map((number) => blocks[number].children.filter((child) => child.block === undefined || !opened.has(child.block)).length));

// Opens the largest blocks, as long as there are not more boxes than that.
function openUpTo(mostBoxes) {
  for (;;) {
    const boxes = shownBoxes();
    const fitting = shownBlocks().filter((number) => boxes - 1 + blocks[number].children.length <= mostBoxes);
    if (!fitting.length) return;
    opened.add(fitting.reduce((best, number) => blocks[number].nodes.length > blocks[best].nodes.length ? number : best));
  }
}

// ---- what is known of the chosen

function tensorItem(t) {
  const tensor = tensors[t];
  const name = element('a', {onclick: () => choose({tensor: t}, 'graph')}, shown(tensor.name, 120));
  const kind = tensor.kind === 'computed' ? '' : tensor.kind + ' · ';
  return element('li', {}, name, element('span', {class: 'type'}, kind + tensor.type + (isNumber(tensor.bytes) ? ' · ' + bytesText(tensor.bytes) : '')));
}

function nodeItem(n) {
  return element('li', {}, element('a', {onclick: () => choose({node: n})}, nodes[n].op), element('span', {class: 'type'}, shown(nodeName(nodes[n]), 120)));
}

function listOf(title, items) {
  return items.length ? [element('h4', {}, title), element('ul', {}, ...items)] : [];
}

function errorFacts(name) {
  if (!data.errors || !Object.prototype.hasOwnProperty.call(data.errors, name)) return [];
  return Object.entries(data.errors[name]).filter(([, value]) => isNumber(value) || typeof value === 'boolean').map(([key, value]) => [key.replaceAll('_', ' '), String(isNumber(value) ? Number(value.toPrecision(4)) : value)]);
}

function detailsOf() {
  if (chosen.node >= 0) return nodeDetails(nodes[chosen.node]);
  if (chosen.block >= 0) return blockDetails(blocks[chosen.block]);
  if (chosen.tensor >= 0) return tensorDetails(tensors[chosen.tensor]);
  return [element('h3', {}, 'The whole model'), ...blockDetails(blocks[0]).slice(1)];
}

function idleText(node) {
  return {known: 'none: known before runs, from shapes and weights', view: 'none: its outputs lie where its inputs do'}[node.idle] || '';
}

function nodeDetails(node) {
  const declined = (node.declined || []).map((entry) => element('li', {}, entry.provider + ': ' + shown(entry.reason)));
  return [element('h3', {}, node.op), element('div', {class: 'sub'}, shown(node.text, 600)), facts([
    ['time', hasTimes && !node.idle ? `${timeText(node.seconds)}, ${percentText(node.share)}` : idleText(node)],
    ['calls', node.calls > 1 ? String(node.calls) : ''],
    ['provider', node.provider], ['kernel', node.kernel], ['precision', node.precision],
    ['was', node.was], ['FLOPs', countText(node.flops)], ['reads and writes', bytesText(node.bytes)],
    ['rates', [rateText(node.flops, node.seconds, 'GFLOP/s'), rateText(node.bytes, node.seconds, 'GB/s')].filter(Boolean).join(', ')],
    ['block', node.block > 0 ? element('a', {onclick: () => choose({block: node.block})}, shown(blocks[node.block].path, 120)) : ''],
    ['note', node.doc],
    ...node.outputs.flatMap((t) => errorFacts(tensors[t].name)),
  ]), ...listOf('declined by', declined), ...listOf('inputs', node.inputs.map(tensorItem)), ...listOf('outputs', node.outputs.map(tensorItem))];
}

function blockDetails(block) {
  const slowest = block.nodes.map((n) => nodes[n]).sort((a, b) => (b.seconds || 0) - (a.seconds || 0)).slice(0, 8);
  const alike = blocks.filter((other) => other.likeness === block.likeness).length - 1;
  const operators = block.operators.slice(0, 12).map(([op, count]) => element('li', {}, `${count} × ${op}`));
  return [element('h3', {}, shown(block.label || 'block', 120)), element('div', {class: 'sub'}, block.parent > 0 ? shown(block.path, 300) : ''), facts([
    ['nodes', String(block.nodes.length)],
    ['time', hasTimes ? `${timeText(block.seconds)}, ${percentText(block.share)}` : ''],
    ['FLOPs', countText(block.flops)], ['reads and writes', bytesText(block.bytes)],
    ['rates', [rateText(block.flops, block.seconds, 'GFLOP/s'), rateText(block.bytes, block.seconds, 'GB/s')].filter(Boolean).join(', ')],
    ['alike', alike > 0 && block.number > 0 ? plural(alike, 'other block') + ' with the same operators' : ''],
  ]), ...listOf(hasTimes ? 'slowest nodes' : 'nodes', slowest.map((node) => element('li', {}, element('a', {onclick: () => choose({node: node.number})}, node.op),
      element('span', {class: 'type'}, (hasTimes ? timeText(node.seconds) + ' · ' : '') + shown(nodeName(node), 100))))), ...listOf('operators', operators)];
}

function tensorDetails(tensor) {
  return [element('h3', {}, shown(tensor.name, 400)), element('div', {class: 'sub'}, tensor.kind === 'computed' ? 'tensor' : tensor.kind), facts([
    ['type', tensor.type], ['size', isNumber(tensor.bytes) ? bytesText(tensor.bytes) : ''], ...errorFacts(tensor.name),
  ]), ...listOf('made by', tensor.producer !== undefined ? [nodeItem(tensor.producer)] : []), ...listOf('read by', tensor.readers.slice(0, 50).map(nodeItem))];
}

let graphView = null;
function showGraph() {
  setUpColours();
  graphView = new GraphView(section('graph'));
}
