'use strict';
// Draws the curves and the Gantt of a report from the data in the page. Names are only ever set as text, never as markup.
(function () {
  const data = JSON.parse(document.getElementById('data').textContent);
  const hidden = new Set();
  const SVG = 'http://www.w3.org/2000/svg';
  const HOUR = 3600, DAY = 86400;

  function make(tag, attributes, text) {
    const element = document.createElement(tag);
    for (const key in attributes || {}) element.setAttribute(key, attributes[key]);
    if (text !== undefined) element.textContent = text;
    return element;
  }
  function draw(parent, tag, attributes, text) {
    const element = document.createElementNS(SVG, tag);
    for (const key in attributes) element.setAttribute(key, attributes[key]);
    if (text !== undefined) element.textContent = text;
    parent.appendChild(element);
    return element;
  }

  // How numbers read on an axis and in the line below a chart.
  const plain = (value) => Math.abs(value) >= 1000 ? Math.round(value).toLocaleString('en-US') : String(Number(value.toPrecision(3)));
  const percent = (value) => plain(value) + ' %';
  function seconds(value) {
    if (value <= 1) return '≤ 1 s';
    if (value < 60) return plain(value) + ' s';
    if (value < HOUR) return plain(value / 60) + ' min';
    if (value < 2 * DAY) return plain(value / HOUR) + ' h';
    return plain(value / DAY) + ' d';
  }
  const hours = (value) => value === 0 ? '0' : value < 1.999 / 60 ? plain(value * 3600) + ' s' : value < 1 ? plain(value * 60) + ' min' : value >= 72 || (value >= 24 && value % 24 === 0) ? plain(value / 24) + ' d' : plain(value) + ' h';

  // A scale maps values to 0..1 and names its ticks.
  function niceStep(span, wanted) {
    const raw = span / wanted, power = Math.pow(10, Math.floor(Math.log10(raw)));
    for (const factor of [1, 2, 2.5, 5, 10]) if (raw <= factor * power * 1.0001) return factor * power;
    return 10 * power;
  }
  function linear(low, high, wanted, steps) {
    if (!(high > low)) high = low + 1;
    let step = niceStep(high - low, wanted);
    if (steps) step = steps.find((candidate) => (high - low) / candidate <= wanted + 1) || step;
    const ticks = [];
    for (let tick = Math.ceil(low / step - 1e-9) * step; tick <= high + step * 1e-6; tick += step) ticks.push(tick);
    return { at: (value) => (value - low) / (high - low), back: (part) => low + part * (high - low), ticks: ticks };
  }
  // Times from a second to weeks; everything below a second sits at the left edge.
  function logSeconds(high) {
    const top = Math.log10(Math.max(high, 60));
    const ticks = [1, 10, 60, 600, HOUR, 6 * HOUR, DAY, 7 * DAY, 30 * DAY, 365 * DAY].filter((tick) => Math.log10(tick) <= top + 0.05);
    return { at: (value) => Math.log10(Math.max(value, 1)) / top, back: (part) => Math.pow(10, part * top), ticks: ticks };
  }

  // Steps of an axis of time, in hours: from a second to half a year.
  const TIME_STEPS = [1 / 3600, 2 / 3600, 5 / 3600, 10 / 3600, 30 / 3600, 1 / 60, 2 / 60, 5 / 60, 10 / 60, 0.5,
    1, 2, 3, 6, 12, 24, 48, 96, 168, 336, 720, 1440, 4320];

  const ARRIVED = 'load that has arrived, % of capacity', SINCE_START = 'time since the start';
  const CHARTS = [
    { key: 'allocation', title: 'Allocation over arrived load', note: 'GPUs allocated, % of capacity', across: ARRIVED, x: percent, y: percent },
    { key: 'allocation', title: 'Allocation, the end of the load', note: 'the same from 80 % arrived on', across: ARRIVED, x: percent, y: percent, from: 80, fromZero: false },
    { key: 'fragmentation', title: 'Fragmentation over arrived load', note: 'GPUs idle and of no use to the typical job, % of capacity', across: ARRIVED, x: percent, y: percent },
    { key: 'wait', title: 'Waiting time', note: 'share of completed jobs that waited at most so long', across: 'waiting time, logarithmic', x: seconds, y: percent, log: true, top: 100 },
    { key: 'jct', title: 'Completion time', note: 'share of completed jobs that were done within', across: 'completion time, logarithmic', x: seconds, y: percent, log: true, top: 100 },
    { key: 'utilization', title: 'GPUs allocated over time', note: '% of capacity', across: SINCE_START, x: hours, y: percent, time: true, top: 100 },
    { key: 'queue_jobs', title: 'Jobs waiting over time', note: 'number of jobs', across: SINCE_START, x: hours, y: plain, time: true },
    { key: 'queue_gpus', title: 'GPUs asked for by waiting jobs', note: 'number of GPUs', across: SINCE_START, x: hours, y: plain, time: true },
    { key: 'fragmented', title: 'Fragmentation over time', note: 'GPUs idle and of no use to the typical job, % of capacity', across: SINCE_START, x: hours, y: percent, time: true },
    { key: 'gap', title: 'Dominant-share gap over time', note: 'largest shortfall of a queue below its entitlement, % of capacity', across: SINCE_START, x: hours, y: percent, time: true },
    { key: 'jain', title: "Jain's index over time", note: '1: every queue has the same part of its entitlement', across: SINCE_START, x: hours, y: plain, time: true, top: 1 },
  ];

  function linesOf(chart) {
    const lines = [];
    for (const run of data.runs) {
      const points = run.curves[chart.key].filter((point) => chart.from === undefined || point[0] >= chart.from);
      if (points.length > 0) lines.push({ policy: data.policies.indexOf(run.policy), name: run.policy, seed: run.seed, points: points });
    }
    return lines;
  }
  // A quantity that is 0 everywhere was not measured, or has nothing to show.
  const worthDrawing = (lines) => lines.some((line) => line.points.some((point) => point[1] !== 0));
  const colour = (policy) => 'var(--c' + (policy % 8) + ')';
  const dash = (policy) => ['', '7 3', '2 3'][Math.floor(policy / 8) % 3];
  const swatch = (policy) => 'swatch c' + (policy % 8) + ' d' + Math.floor(policy / 8) % 3;

  // The y of a curve at x: the last point not beyond it.
  function valueAt(points, x) {
    let low = 0, high = points.length - 1;
    if (x < points[0][0]) return undefined;
    while (low < high) {
      const middle = (low + high + 1) >> 1;
      if (points[middle][0] <= x) low = middle; else high = middle - 1;
    }
    return points[low][1];
  }

  function scalesOf(chart, lines) {
    let left = Infinity, right = -Infinity, bottom = Infinity, top = -Infinity;
    for (const line of lines) for (const point of line.points) {
      left = Math.min(left, point[0]); right = Math.max(right, point[0]);
      bottom = Math.min(bottom, point[1]); top = Math.max(top, point[1]);
    }
    if (chart.top) top = chart.top;
    const low = chart.fromZero === false ? Math.max(0, bottom - 0.1 * (top - bottom)) : 0;
    const x = chart.log ? logSeconds(right) : linear(chart.time ? Math.min(0, left) : left, right, 6, chart.time ? TIME_STEPS : null);
    return { x: x, y: linear(low, chart.top ? top : top + 0.04 * (top - low), 5) };
  }

  function drawChart(figure, chart, lines) {
    const old = figure.querySelector('svg');
    if (old) old.remove();
    const width = Math.max(280, figure.clientWidth - 28), height = 266;
    const inner = { left: 46, right: 12, top: 8, bottom: 40 };
    const scales = scalesOf(chart, lines);
    const px = (value) => inner.left + scales.x.at(value) * (width - inner.left - inner.right);
    const py = (value) => height - inner.bottom - scales.y.at(value) * (height - inner.top - inner.bottom);
    const svg = document.createElementNS(SVG, 'svg');
    svg.setAttribute('viewBox', '0 0 ' + width + ' ' + height);
    svg.setAttribute('role', 'img');
    svg.setAttribute('aria-label', chart.title);
    for (const tick of scales.y.ticks) {
      draw(svg, 'line', { class: 'gridline', x1: inner.left, x2: width - inner.right, y1: py(tick), y2: py(tick) });
      draw(svg, 'text', { x: inner.left - 6, y: py(tick) + 4, 'text-anchor': 'end' }, chart.y(tick));
    }
    let free = -Infinity;
    for (const tick of scales.x.ticks) {
      const x = px(tick);
      draw(svg, 'line', { class: 'axis', x1: x, x2: x, y1: height - inner.bottom, y2: height - inner.bottom + 4 });
      if (x < free || x > width - 8) continue;
      draw(svg, 'text', { x: x, y: height - 22, 'text-anchor': 'middle' }, chart.x(tick));
      free = x + 46;
    }
    draw(svg, 'line', { class: 'axis', x1: inner.left, x2: width - inner.right, y1: height - inner.bottom, y2: height - inner.bottom });
    drawAcross(svg, (inner.left + width - inner.right) / 2, height - 5, chart.across);
    const shown = lines.filter((line) => !hidden.has(line.policy));
    const seeds = {};
    for (const line of shown) seeds[line.policy] = (seeds[line.policy] || 0) + 1;
    for (const line of shown) {
      let path = '';
      for (const point of line.points) path += (path ? 'L' : 'M') + px(point[0]).toFixed(1) + ' ' + py(point[1]).toFixed(1);
      const many = seeds[line.policy] > 1;
      draw(svg, 'path', { class: 'curve', d: path, stroke: colour(line.policy), 'stroke-width': many ? 1.1 : 1.8, 'stroke-opacity': many ? 0.6 : 1, 'stroke-dasharray': dash(line.policy) });
    }
    figure.insertBefore(svg, figure.querySelector('.readout'));
    addReadout(figure, svg, chart, shown, scales, { width: width, height: height, inner: inner });
  }

  // What the axis below a drawing measures.
  const drawAcross = (svg, x, y, title) => draw(svg, 'text', { class: 'across', x: x, y: y, 'text-anchor': 'middle' }, title);

  // Moving over a chart shows, for each policy, the mean over its drawn seeds at that place.
  function addReadout(figure, svg, chart, lines, scales, box) {
    const readout = figure.querySelector('.readout');
    const cross = draw(svg, 'line', { class: 'cross', y1: box.inner.top, y2: box.height - box.inner.bottom, visibility: 'hidden' });
    readout.textContent = '';
    svg.addEventListener('pointerleave', function () { cross.setAttribute('visibility', 'hidden'); readout.textContent = ''; });
    svg.addEventListener('pointermove', function (event) {
      const bounds = svg.getBoundingClientRect();
      const x = (event.clientX - bounds.left) * box.width / bounds.width;
      const part = (x - box.inner.left) / (box.width - box.inner.left - box.inner.right);
      if (part < 0 || part > 1) return;
      const value = scales.x.back(part);
      cross.setAttribute('x1', x); cross.setAttribute('x2', x); cross.setAttribute('visibility', 'visible');
      const sums = new Map();
      for (const line of lines) {
        const y = valueAt(line.points, value);
        if (y === undefined) continue;
        const sum = sums.get(line.policy) || { total: 0, count: 0, name: line.name };
        sum.total += y; sum.count += 1;
        sums.set(line.policy, sum);
      }
      readout.textContent = '';
      readout.appendChild(make('span', {}, chart.x(value)));
      for (const [policy, sum] of sums) {
        const entry = make('span', {}, sum.name + ' ');
        entry.insertBefore(make('span', { class: swatch(policy) }), entry.firstChild);
        entry.appendChild(make('b', {}, chart.y(sum.total / sum.count)));
        readout.appendChild(entry);
      }
    });
  }

  const figures = [];
  function buildCharts() {
    const grid = document.getElementById('grid');
    for (const chart of CHARTS) {
      const lines = linesOf(chart);
      if (lines.length === 0 || !worthDrawing(lines)) continue;
      const figure = make('figure');
      const caption = make('figcaption', {}, chart.title);
      caption.appendChild(make('span', {}, chart.note));
      figure.appendChild(caption);
      figure.appendChild(make('div', { class: 'readout', 'aria-live': 'off' }));
      grid.appendChild(figure);
      figures.push({ figure: figure, chart: chart, lines: lines });
    }
    if (figures.length === 0) document.getElementById('charts').hidden = true;
  }
  function drawCharts() {
    for (const entry of figures) drawChart(entry.figure, entry.chart, entry.lines);
  }
  function buildLegend() {
    const legend = document.getElementById('legend');
    data.policies.forEach(function (name, policy) {
      const button = make('button', { type: 'button', 'aria-pressed': 'true', title: 'show or hide' });
      button.appendChild(make('span', { class: swatch(policy) }));
      button.appendChild(document.createTextNode(name));
      button.addEventListener('click', function () {
        if (hidden.has(policy)) hidden.delete(policy); else hidden.add(policy);
        button.setAttribute('aria-pressed', String(!hidden.has(policy)));
        drawCharts();
      });
      legend.appendChild(button);
    });
  }

  // The same queue keeps its colour whichever policy is looked at.
  const ganttColours = new Map();
  const ganttRuns = data.runs.filter((run) => run.gantt && run.gantt.cells.length > 0);
  function ganttColour(queue) {
    if (queue.startsWith('others (')) return 'var(--q11)';
    if (!ganttColours.has(queue)) ganttColours.set(queue, Math.min(ganttColours.size, 11));
    return 'var(--q' + ganttColours.get(queue) + ')';
  }
  let ganttShown = 0;
  function drawGantt() {
    const body = document.getElementById('gantt-body');
    body.textContent = '';
    if (ganttRuns.length > 1) {
      const tabs = make('div', { class: 'tabs' });
      ganttRuns.forEach(function (run, index) {
        const button = make('button', { type: 'button', 'aria-pressed': String(index === ganttShown) }, run.policy);
        button.addEventListener('click', function () { ganttShown = index; drawGantt(); });
        tabs.appendChild(button);
      });
      body.appendChild(tabs);
    }
    const run = ganttRuns[ganttShown], gantt = run.gantt;
    const legend = make('div', { class: 'legend' });
    gantt.queues.forEach(function (queue) {
      const entry = make('span', {}, queue);
      const swatch = make('span', { class: 'swatch' });
      swatch.style.background = ganttColour(queue);
      entry.insertBefore(swatch, entry.firstChild);
      legend.appendChild(entry);
    });
    body.appendChild(legend);
    const figure = make('figure');
    const caption = make('figcaption', {}, run.policy + ', seed ' + run.seed);
    caption.appendChild(make('span', {}, gantt.nodes.toLocaleString('en-US') + (gantt.nodes === 1 ? ' node in ' : ' nodes in ') + gantt.rows + (gantt.rows === 1 ? ' row;' : ' rows;') + ' colour: the queue that holds most; strength: how full'));
    figure.appendChild(caption);
    body.appendChild(figure);
    drawGanttCells(figure, gantt);
  }
  function drawGanttCells(figure, gantt) {
    const width = Math.max(280, figure.clientWidth - 28), left = 54, bottom = 40;
    const rowHeight = Math.max(4, Math.min(16, 420 / gantt.rows)), height = gantt.rows * rowHeight + bottom;
    const svg = document.createElementNS(SVG, 'svg');
    svg.setAttribute('viewBox', '0 0 ' + width + ' ' + height);
    svg.setAttribute('role', 'img');
    svg.setAttribute('aria-label', 'The fleet over time, by queue');
    const columnWidth = (width - left - 4) / gantt.columns, gap = rowHeight > 6 ? 1 : 0.5;
    for (let i = 0; i < gantt.cells.length; i += 5) {
      const [row, column, columns, queue, level] = gantt.cells.slice(i, i + 5);
      const cell = draw(svg, 'rect', { x: (left + column * columnWidth).toFixed(2), y: (row * rowHeight).toFixed(2), width: (columns * columnWidth + 0.3).toFixed(2), height: (rowHeight - gap).toFixed(2), 'fill-opacity': 0.15 + 0.85 * level / 8 });
      cell.style.fill = ganttColour(gantt.queues[queue]);
    }
    const rows = Math.max(1, Math.ceil(gantt.rows / 8));
    for (let row = 0; row < gantt.rows; row += rows) {
      const node = Math.ceil(row * gantt.nodes / gantt.rows);
      draw(svg, 'text', { x: left - 6, y: row * rowHeight + Math.max(9, rowHeight * 0.75), 'text-anchor': 'end' }, row === 0 ? 'node ' + node : String(node));
    }
    const scale = linear(gantt.start_h, gantt.end_h, Math.max(2, Math.min(10, Math.floor(width / 90))), TIME_STEPS);
    for (const tick of scale.ticks) {
      const x = left + scale.at(tick) * (width - left - 4);
      if (x <= width - 12) draw(svg, 'text', { x: x, y: height - 22, 'text-anchor': 'middle' }, hours(tick));
    }
    drawAcross(svg, (left + width - 4) / 2, height - 5, SINCE_START);
    draw(svg, 'line', { class: 'axis', x1: left, x2: width - 4, y1: height - bottom + 2, y2: height - bottom + 2 });
    figure.appendChild(svg);
  }

  buildLegend();
  buildCharts();
  drawCharts();
  if (ganttRuns.length > 0) {
    document.getElementById('gantt').hidden = false;
    drawGantt();
  }
  let waiting = 0;
  window.addEventListener('resize', function () {
    clearTimeout(waiting);
    waiting = setTimeout(function () { drawCharts(); if (ganttRuns.length > 0) drawGantt(); }, 120);
  });
}());
