'use strict';
(() => {
  // ---------------------------------------------------------------- data
  const D = JSON.parse(document.getElementById('data').textContent);
  const bytes = (text) => Uint8Array.from(atob(text), (c) => c.charCodeAt(0));
  const array = (text, Type) => (text == null ? null : new Type(bytes(text).buffer));
  const d = D.states, s = D.rank;
  const weight = array(D.weight, Float32Array), top = array(D.top, Uint8Array);
  // A state belongs to the meta-state of its largest membership (home) and lies in one zone (ours). The two are numbered alike where there is a zone for
  // each meta-state; otherwise zones have colours of their own.
  const ours = array(D.zone, Uint16Array), home = array(D.metastate, Uint16Array);
  const paired = D.zones_are_metastates;
  const lon = array(D.lon, Float32Array), lat = array(D.lat, Float32Array);
  const shown = array(D.shown, Uint32Array), U = array(D.u, Uint16Array), V = array(D.v, Float32Array);
  const rival = D.rival ? array(D.rival.hard, Uint16Array) : null;
  const pathHard = D.path ? D.path.hard.map((h) => array(h, Uint16Array)) : [];
  const place = new Map();                       // state -> its row among the shown ones
  shown.forEach((i, k) => place.set(i, k));
  const labelOf = (i) => (place.has(i) ? D.labels[place.get(i)] : 'state ' + (i + 1));
  const membership = (i, j) => (place.has(i) && U ? U[place.get(i) * s + j] / 65535 : home[i] === j ? top[i] / 255 : 0);

  // With slices: flows of each, and where trips lead in it (rows of V by slice and state).
  const H = D.slices || null, flowsOf = H && array(H.flows, Float32Array), whereTo = H && array(H.profiles, Float32Array), rowState = H && array(H.states, Uint32Array);
  const flowIn = (h, i, j) => flowsOf[(h * s + i) * s + j];
  const leaving = H ? H.labels.map((_, h) => Array.from({ length: s }, (_, i) => { let x = 0; for (let j = 0; j < s; j++) x += flowIn(h, i, j); return x; })) : [];
  const sliceName = (h) => D.summary.slices.expression + ' = ' + H.labels[h];

  // ---------------------------------------------------------------- what is chosen, and which figures follow the choice
  // Next to the hard zones of another method ours are shown hard at first, so that the two can be compared.
  const now = { metastate: null, state: null, slice: null, soft: !rival, beside: !!rival, all: false, steps: 1, point: D.path ? D.path.chosen : null };
  const listeners = [];
  const set = (change) => { Object.assign(now, change); listeners.forEach((f) => f()); };
  const pick = (j) => set({ metastate: now.metastate === j ? null : j });
  const hardNow = () => (now.point != null && now.point !== D.path.chosen && pathHard[now.point] ? pathHard[now.point] : ours);

  // ---------------------------------------------------------------- small tools
  const el = (name, options = {}, ...children) => {
    const node = document.createElement(name);
    for (const [key, value] of Object.entries(options)) {
      if (key === 'text') node.textContent = value;
      else if (key === 'on') for (const [event, f] of Object.entries(value)) node.addEventListener(event, f);
      else if (key === 'style') for (const [name, v] of Object.entries(value)) node.style.setProperty(name, v);
      else node.setAttribute(key, value);
    }
    node.append(...children.filter((c) => c != null));
    return node;
  };
  const css = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();
  const fixed = (x, n = 3) => (x == null || Number.isNaN(x) ? '–' : String(Number(Number(x).toPrecision(n))));
  const number = (x) => (x == null ? '–' : x === 0 ? '0' : Math.abs(x) >= 1e-3 && Math.abs(x) < 1e7 ? fixed(x, 4) : Number(x).toExponential(2));
  const count = (x) => Math.round(x).toLocaleString('en');
  const percent = (x) => (x > 0 && x < 0.0095 ? fixed(100 * x, 2) : (100 * x).toFixed(x < 0.0995 ? 1 : 0)) + ' %';

  // The same colours as in the plots and in zones.geojson.
  const colour = (j) => D.colours[j % D.colours.length];
  const zoneColour = (z) => colour(paired ? z : s + z);
  const zoneName = (z) => 'zone ' + (z + 1) + (D.zone_names[z] ? ' ' + D.zone_names[z] : '');
  const nameOf = (j) => (paired && D.zone_names[j] ? D.zone_names[j] : '');
  const clip = (t, n = 26) => (t.length > n ? t.slice(0, n - 1) + '…' : t);
  // A state between meta-states has a colour between theirs.
  const blend = (i) => {
    const sum = [0, 0, 0];
    for (let j = 0; j < s; j++) { const m = membership(i, j); if (m > 0) { const hex = colour(j); for (let k = 0; k < 3; k++) sum[k] += m * parseInt(hex.slice(1 + 2 * k, 3 + 2 * k), 16); } }
    return '#' + sum.map((x) => Math.min(255, Math.round(x)).toString(16).padStart(2, '0')).join('');
  };
  // Dark blue to yellow, lightness rising all the way (cividis).
  const RAMP = ['#00204d', '#16396d', '#414d6b', '#61636d', '#7d7c78', '#9c9574', '#beb069', '#e1cc55', '#ffea46'];
  const mix = (a, b, t) => {
    const part = (hex, k) => parseInt(hex.slice(1 + 2 * k, 3 + 2 * k), 16);
    return '#' + [0, 1, 2].map((k) => Math.round(part(a, k) * (1 - t) + part(b, k) * t).toString(16).padStart(2, '0')).join('');
  };
  const ramp = (t) => {
    const x = Math.min(Math.max(t, 0), 1) * (RAMP.length - 1), k = Math.min(Math.floor(x), RAMP.length - 2);
    return mix(RAMP[k], RAMP[k + 1], x - k);
  };

  // ---------------------------------------------------------------- each drawing is made with one of two pens: for the screen, or for an SVG file
  class ScreenPen {
    constructor(canvas, w, h) {
      const ratio = Math.min(window.devicePixelRatio || 1, 3);
      canvas.width = Math.round(w * ratio); canvas.height = Math.round(h * ratio); canvas.style.height = h + 'px';
      this.c = canvas.getContext('2d'); this.c.setTransform(ratio, 0, 0, ratio, 0, 0); this.c.clearRect(0, 0, w, h);
    }
    rect(x, y, w, h, fill, alpha = 1) { this.c.globalAlpha = alpha; this.c.fillStyle = fill; this.c.fillRect(x, y, w, h); this.c.globalAlpha = 1; }
    frame(x, y, w, h, stroke, width = 1) { this.c.strokeStyle = stroke; this.c.lineWidth = width; this.c.strokeRect(x, y, w, h); }
    line(points, stroke, width = 1, dash = []) {
      this.c.strokeStyle = stroke; this.c.lineWidth = width; this.c.setLineDash(dash); this.c.lineJoin = 'round'; this.c.beginPath();
      points.forEach(([x, y], k) => (k ? this.c.lineTo(x, y) : this.c.moveTo(x, y))); this.c.stroke(); this.c.setLineDash([]);
    }
    curve(x0, y0, cx, cy, x1, y1, stroke, width, alpha = 1) {
      this.c.globalAlpha = alpha; this.c.strokeStyle = stroke; this.c.lineWidth = width; this.c.beginPath();
      this.c.moveTo(x0, y0); this.c.quadraticCurveTo(cx, cy, x1, y1); this.c.stroke(); this.c.globalAlpha = 1;
    }
    polygon(points, fill, alpha = 1, stroke = null, width = 1) {
      this.c.beginPath(); points.forEach(([x, y], k) => (k ? this.c.lineTo(x, y) : this.c.moveTo(x, y))); this.c.closePath();
      this.c.globalAlpha = alpha; this.c.fillStyle = fill; this.c.fill(); this.c.globalAlpha = 1;
      if (stroke) { this.c.strokeStyle = stroke; this.c.lineWidth = width; this.c.lineJoin = 'round'; this.c.stroke(); }
    }
    within(x, y, w, h, f) { this.c.save(); this.c.beginPath(); this.c.rect(x, y, w, h); this.c.clip(); f(); this.c.restore(); }
    circle(x, y, r, fill, stroke = null, width = 1) {
      this.c.beginPath(); this.c.arc(x, y, r, 0, 2 * Math.PI);
      if (fill) { this.c.fillStyle = fill; this.c.fill(); }
      if (stroke) { this.c.strokeStyle = stroke; this.c.lineWidth = width; this.c.stroke(); }
    }
    text(t, x, y, { anchor = 'start', size = 12, fill = css('--ink'), weight: bold = 400, rotate = 0 } = {}) {
      this.c.save(); this.c.translate(x, y); this.c.rotate((rotate * Math.PI) / 180);
      this.c.font = bold + ' ' + size + 'px system-ui, sans-serif'; this.c.fillStyle = fill;
      this.c.textAlign = anchor === 'middle' ? 'center' : anchor; this.c.fillText(t, 0, 0); this.c.restore();
    }
  }
  class FilePen {
    constructor(w, h) { this.w = w; this.h = h; this.out = []; }
    put(tag, attributes, text) {
      const clean = (t) => String(t).replace(/[&<>"']/g, (c) => '&#' + c.charCodeAt(0) + ';');
      const list = Object.entries(attributes).map(([k, v]) => ' ' + k + '="' + clean(typeof v === 'number' ? +v.toFixed(2) : v) + '"').join('');
      this.out.push('<' + tag + list + (text == null ? '/>' : '>' + clean(text) + '</' + tag + '>'));
    }
    rect(x, y, width, height, fill, alpha = 1) { this.put('rect', { x, y, width, height, fill, 'fill-opacity': alpha }); }
    frame(x, y, width, height, stroke, w = 1) { this.put('rect', { x, y, width, height, fill: 'none', stroke, 'stroke-width': w }); }
    line(points, stroke, width = 1, dash = []) {
      this.put('polyline', { points: points.map(([x, y]) => x.toFixed(2) + ',' + y.toFixed(2)).join(' '), fill: 'none', stroke, 'stroke-width': width, 'stroke-dasharray': dash.join(' ') });
    }
    curve(x0, y0, cx, cy, x1, y1, stroke, width, alpha = 1) {
      const n = (v) => v.toFixed(2);
      this.put('path', { d: `M${n(x0)} ${n(y0)}Q${n(cx)} ${n(cy)} ${n(x1)} ${n(y1)}`, fill: 'none', stroke, 'stroke-width': width, 'stroke-opacity': alpha });
    }
    polygon(points, fill, alpha = 1, stroke = null, width = 1) {
      this.put('polygon', { points: points.map(([x, y]) => x.toFixed(2) + ',' + y.toFixed(2)).join(' '), fill, 'fill-opacity': alpha, stroke: stroke || 'none', 'stroke-width': width });
    }
    within(x, y, w, h, f) {
      const id = 'view' + this.out.length;
      this.out.push(`<clipPath id="${id}"><rect x="${x.toFixed(2)}" y="${y.toFixed(2)}" width="${w.toFixed(2)}" height="${h.toFixed(2)}"/></clipPath><g clip-path="url(#${id})">`);
      f(); this.out.push('</g>');
    }
    circle(cx, cy, r, fill, stroke = null, width = 1) { this.put('circle', { cx, cy, r, fill: fill || 'none', stroke: stroke || 'none', 'stroke-width': width }); }
    text(t, x, y, { anchor = 'start', size = 12, fill = css('--ink'), weight: bold = 400, rotate = 0 } = {}) {
      this.put('text', { x, y, 'text-anchor': anchor, 'font-size': size, 'font-family': 'sans-serif', 'font-weight': bold, fill, transform: rotate ? `rotate(${rotate} ${x} ${y})` : '' }, t);
    }
    file(words) {
      this.put('title', {}, words);
      const title = this.out.pop();
      return `<svg xmlns="http://www.w3.org/2000/svg" width="${this.w}" height="${this.h}" viewBox="0 0 ${this.w} ${this.h}" role="img">${title}<rect width="100%" height="100%" fill="${css('--card')}"/>${this.out.join('')}</svg>`;
    }
  }

  // Axes: a linear or logarithmic scale, ticks with round numbers.
  const scale = (from, to, a, b, log = false) => {
    const f = log ? Math.log10 : (x) => x, lo = f(from), hi = f(to) === f(from) ? f(from) + 1 : f(to);
    const g = (x) => a + ((f(x) - lo) / (hi - lo)) * (b - a);
    g.ticks = (wanted = 5) => {
      if (log) {
        const list = [];
        for (let e = Math.ceil(Math.min(lo, hi) - 1e-9); e <= Math.max(lo, hi) + 1e-9; e++) list.push(10 ** e);
        if (list.length >= 3) return list.filter((_, k) => k % Math.ceil(list.length / 7) === 0);
        const [least, most] = [Math.min(from, to), Math.max(from, to)], fine = [];
        for (let e = Math.floor(Math.log10(least)); e <= Math.log10(most); e++) for (const m of [1, 2, 5]) if (m * 10 ** e >= least && m * 10 ** e <= most) fine.push(m * 10 ** e);
        return fine.length >= 2 ? fine : [least, most];
      }
      const span = Math.abs(hi - lo), raw = span / wanted, power = 10 ** Math.floor(Math.log10(raw));
      const step = [1, 2, 5, 10].map((m) => m * power).find((m) => m >= raw);
      const list = [];
      for (let x = Math.ceil(Math.min(lo, hi) / step) * step; x <= Math.max(lo, hi) + 1e-9 * span; x += step) list.push(Math.abs(x) < 1e-12 * span ? 0 : x);
      return list;
    };
    return g;
  };
  const axes = (pen, box, sx, sy, xName, yName, write = number) => {
    const ink = css('--muted'), line = css('--line');
    sx.ticks().forEach((t) => { const x = sx(t); pen.line([[x, box.y1], [x, box.y0]], line); pen.text(write(t), x, box.y1 + 16, { anchor: 'middle', size: 11, fill: ink }); });
    sy.ticks().forEach((t) => { const y = sy(t); pen.line([[box.x0, y], [box.x1, y]], line); pen.text(number(t), box.x0 - 6, y + 4, { anchor: 'end', size: 11, fill: ink }); });
    pen.text(xName, (box.x0 + box.x1) / 2, box.y1 + 34, { anchor: 'middle', size: 12, fill: ink });
    pen.text(yName, box.x0 - 52, (box.y0 + box.y1) / 2, { anchor: 'middle', size: 12, fill: ink, rotate: -90 });
  };

  // ---------------------------------------------------------------- the tooltip
  const tip = document.getElementById('tip');
  const showTip = (nodes, x, y) => {
    tip.replaceChildren(...nodes); tip.hidden = false;
    const box = tip.getBoundingClientRect();
    tip.style.left = Math.max(4, Math.min(x + 14, innerWidth - box.width - 8)) + 'px';
    tip.style.top = Math.max(4, Math.min(y + 14, innerHeight - box.height - 8)) + 'px';
  };
  const hideTip = () => { tip.hidden = true; };
  const bars = (pairs) => pairs.map(([name, share, fill]) => el('div', { class: 'bar' }, el('span', { text: name }),
    el('i', { style: { width: Math.max(2, 100 * share) + '%', background: fill } }), el('span', { text: percent(share) })));
  const aboutState = (i) => {
    const list = [];
    for (let j = 0; j < s; j++) { const m = membership(i, j); if (m > 0.005) list.push([j, m]); }
    list.sort((a, b) => b[1] - a[1]);
    const head = [el('b', { text: labelOf(i), dir: 'auto' }), el('div', { text: zoneName(ours[i]), dir: 'auto' }), el('div', { text: 'share of all departures: ' + number(weight[i]) })];
    return head.concat(bars(list.slice(0, 6).map(([j, m]) => ['meta-state ' + (j + 1), m, colour(j)])));
  };

  // ---------------------------------------------------------------- cards
  const figures = document.getElementById('figures'), nav = document.getElementById('nav');
  const save = (name, blob) => {
    const link = el('a', { href: URL.createObjectURL(blob), download: name });
    document.body.append(link); link.click(); link.remove(); setTimeout(() => URL.revokeObjectURL(link.href), 60000);
  };
  const csvOf = (rows) => rows.map((r) => r.map((x) => (/[",\n\r]/.test(String(x)) ? '"' + String(x).replace(/"/g, '""') + '"' : x)).join(',')).join('\n') + '\n';
  const card = (id, title, note, parent = figures, inNav = title) => {
    const head = el('div', { class: 'head' }, el('h2', { text: title, id: id + '-title' }));
    const body = el('section', { class: 'card', id, 'aria-labelledby': id + '-title' }, head, note ? el('p', { class: 'note', text: note }) : null);
    parent.append(body);
    if (inNav) nav.append(el('a', { href: '#' + id, text: inNav }));
    body.tools = el('div', { class: 'tools' }); head.append(body.tools);
    body.tool = (text, f, label) => body.tools.append(el('button', { type: 'button', text, 'aria-label': label, on: { click: f } }));
    return body;
  };
  // A figure: draw(pen, w, h); at(x, y) -> { tip, click } under the pointer; rows() -> the data as a table.
  const figure = (body, { name, height, draw, at, rows, words }) => {
    const canvas = el('canvas', { role: 'img', tabindex: at ? '0' : '-1' });
    body.append(canvas);
    const size = () => { const w = Math.max(240, canvas.clientWidth || body.clientWidth - 36); return [w, typeof height === 'function' ? height(w) : height]; };
    const paint = () => { const [w, h] = size(); canvas.setAttribute('aria-label', words()); draw(new ScreenPen(canvas, w, h), w, h); };
    listeners.push(paint);
    new ResizeObserver(paint).observe(body);
    if (at) {
      const where = (e) => { const box = canvas.getBoundingClientRect(); return at(e.clientX - box.left, e.clientY - box.top, ...size()); };
      canvas.addEventListener('pointermove', (e) => { const hit = where(e); canvas.style.cursor = hit && hit.click ? 'pointer' : 'default'; if (hit) showTip(hit.tip, e.clientX, e.clientY); else hideTip(); });
      canvas.addEventListener('pointerleave', hideTip);
      canvas.addEventListener('click', (e) => { const hit = where(e); if (hit && hit.click) hit.click(); });
      canvas.addEventListener('keydown', (e) => { if (e.key === 'Escape') { hideTip(); set({ metastate: null, state: null }); } });
    }
    const svg = () => { const [w, h] = size(), pen = new FilePen(w, h); draw(pen, w, h); return pen.file(words()); };
    body.tool('SVG', () => save(name + '.svg', new Blob([svg()], { type: 'image/svg+xml' })), 'Download ' + name + ' as SVG');
    body.tool('PNG', () => save(name + '.png', new Blob([bytes(canvas.toDataURL('image/png').split(',')[1])], { type: 'image/png' })), 'Download ' + name + ' as PNG');
    body.tool('CSV', () => save(name + '.csv', new Blob([csvOf(rows())], { type: 'text/csv' })), 'Download the data of ' + name + ' as CSV');
    return canvas;
  };
  const toggle = (text, key) => {
    const button = el('button', { type: 'button', text, 'aria-pressed': String(now[key]), on: { click: () => set({ [key]: !now[key] }) } });
    listeners.push(() => button.setAttribute('aria-pressed', String(now[key])));
    return button;
  };

  // ---------------------------------------------------------------- 1. what was found
  const S = D.summary;
  document.getElementById('verdict').append(
    el('span', { class: 'badge ' + (D.badge === 'certified' ? 'certified' : ''), text: D.badge }), el('span', { text: D.verdict }));
  if (S.refit) document.getElementById('verdict').after(el('p', { class: 'note', id: 'refit', text: 'All figures show the refit by ' + (S.refit.kind === 'likelihood' ? `likelihood (a prior of ${fixed(S.refit.prior, 3)} transitions a state)` : 'least squares') + (S.refit.rank === S.rank ? '. The proof above speaks of the penalised solution, in factors.npz.' : ` with the ${S.refit.rank} meta-states that held-out data ask for. The proof above speaks of the penalised solution, in factors.npz, which has ${S.rank}.`) }));
  if (S.choice && S.choice.verdict) document.getElementById('facts').before(el('p', { class: 'note', id: 'prediction', text: 'Verdict: ' + S.choice.verdict + '.' }));
  const fact = (value, name) => el('div', { class: 'fact' }, el('b', { text: value }), el('span', { text: name }));
  document.getElementById('facts').append(fact(count(d), S.control ? 'pairs of state and action' : S.destinations ? 'origins' : 'states'), S.destinations ? fact(count(S.destinations), S.control ? 'next states' : 'destinations') : '', fact(count(S.transitions), 'transitions'), fact(String(s), s === 1 ? 'meta-state' : 'meta-states'),
    fact(S.errors.certified_gap == null ? 'not proven' : percent(S.errors.certified_gap), S.refit ? `proven gap of the penalised solution (${S.rank} meta-states)` : 'certified gap'), ...(S.errors.explained_gap == null ? [] : [fact(percent(S.errors.explained_gap), 'explained gap: as a share of what the meta-states explain beyond a single one')]), fact(number(S.lambda), 'lambda'), fact(fixed(S.seconds.total, 3) + ' s', 'from file to result'));
  const chips = document.getElementById('chips');
  D.metastates.forEach((m, j) => {
    const chip = el('button', { type: 'button', class: 'chip', 'aria-pressed': 'false', 'data-metastate': j, on: { click: () => pick(j) } },
      el('span', { class: 'swatch', style: { background: colour(j) } }), el('span', { text: (j + 1) + (nameOf(j) ? ' ' + clip(nameOf(j)) : '') + ' · ' + percent(m.mass), dir: 'auto' }));
    listeners.push(() => chip.setAttribute('aria-pressed', String(now.metastate === j)));
    chips.append(chip);
  });

  // ---------------------------------------------------------------- actions and the plan
  if (D.plan) {
    const P = D.plan, c = P.check, b = P.bound;
    const body = card('plan', 'Plan', `The best policy of the fitted model at a discount of ${P.discount}, for ${count(P.states - P.ends)} states (policy.csv). Its values are estimates; where a figure is said to be from held-out records, it was measured there.`, figures, 'Plan');
    body.append(el('div', { class: 'facts' }, fact(number(P.mean_value), 'mean value, estimated by the model'),
      ...(c ? [fact(`${number(c.value)} (${number(c.low)} to ${number(c.high)})`, `on held-out ${c.unit}, 19 times of 20`), fact(number(c.claimed), 'what the model predicts for such policies there')] : []),
      ...(c && c.log != null ? [fact(number(c.log), 'what the policy in the log earned')] : []),
      ...(b ? [fact(b.says_something ? number(b.loss) : 'says nothing', 'largest possible loss, if next states occur as often as they were counted')] : [])));
    if (P.not_checked) body.append(el('p', { class: 'note', text: 'Not checked on held-out records: ' + P.not_checked + '.' }));
    P.hints.forEach((hint) => body.append(el('p', { class: 'note', text: hint })));
    const row = (m) => el('tr', { 'data-metastate': m.metastate - 1 }, el('td', {}, el('span', { class: 'swatch', style: { background: colour(m.metastate - 1) } }), ' ' + m.metastate),
      el('td', { text: number(m.worth) }), el('td', { dir: 'auto', text: m.actions.map(([name, share]) => `${name}: ${percent(share)}`).join(', ') || 'nothing: an end' }));
    body.append(el('table', { class: 'plan' }, el('thead', {}, el('tr', {}, ...['meta-state', 'worth', 'what the policy does after a step to this meta-state'].map((t) => el('th', { text: t })))),
      el('tbody', {}, ...P.metastates.map(row))));
    body.tool('CSV', () => save('plan.csv', new Blob([csvOf([['metastate', 'worth', 'actions'], ...P.metastates.map((m) => [m.metastate, m.worth, m.actions.map(([n, x]) => n + ' ' + x).join('; ')])])], { type: 'text/csv' })), 'Download the plan by meta-state as CSV');
  }
  if (D.actions && D.actions.length) {
    const body = card('actions', 'What each action does', 'One step of the chain of meta-states under each action: a row says where the action leads from the states that a meta-state leads to. A row is empty where the action was never tried.', figures, 'Actions');
    const small = el('div', { class: 'actions' });
    D.actions.forEach((a) => {
      const cell = (x) => el('td', { style: { background: `color-mix(in srgb, ${colour(0)} ${Math.round(100 * x)}%, transparent)` }, title: percent(x), text: x >= 0.095 ? (100 * x).toFixed(0) : '' });
      small.append(el('table', { class: 'latent' }, el('caption', { text: a.name, dir: 'auto' }), el('thead', {}, el('tr', {}, el('th', { text: '' }), ...a.chain.map((_, j) => el('th', { text: String(j + 1), scope: 'col' })))),
        el('tbody', {}, ...a.chain.map((line, j) => el('tr', {}, el('th', { text: String(j + 1), scope: 'row' }), ...(a.tried[j] > 0 ? line.map(cell) : line.map(() => el('td', { text: '' }))))))));
    });
    body.append(small);
    body.tool('CSV', () => save('actions.csv', new Blob([csvOf([['action', 'from_metastate', 'to_metastate', 'probability'], ...D.actions.flatMap((a) => a.chain.flatMap((line, j) => line.map((x, k) => [a.name, j + 1, k + 1, x])))])], { type: 'text/csv' })), 'Download the chains of all actions as CSV');
  }

  // ---------------------------------------------------------------- 2. the map, or the memberships
  if (H) {
    const n = H.labels.length, input = el('input', { type: 'range', min: '0', max: String(n), step: '1', value: '0', 'aria-label': 'Slice' }), tell = el('output', {});
    input.addEventListener('input', () => set({ slice: Number(input.value) ? Number(input.value) - 1 : null }));
    listeners.push(() => { input.value = String(now.slice == null ? 0 : now.slice + 1); tell.textContent = now.slice == null ? 'all slices together' : sliceName(now.slice) + ', ' + percent(leaving[now.slice].reduce((a, b) => a + b, 0)) + ' of all transitions'; });
    figures.append(el('div', { class: 'controls slider', id: 'slice' }, el('label', {}, D.summary.slices.expression, input), tell, el('button', { type: 'button', text: 'All slices', on: { click: () => set({ slice: null }) } })));
    const C = D.summary.slices.change;
    const body = card('slices', 'Over the slices', 'When trips leave each meta-state: shares of all transitions. The slider above moves the map to where trips lead in that slice (of the chosen cell or meta-state, or of all), the flow diagram and the table of steps.' + (C ? ` Where trips lead changes over the slices: knowing the slice improves the prediction by ${fixed(C.whole.gain, 3)} nats for each held-out transition (p = ${fixed(C.whole.p_value, 3)}, by ${C.permutations} random permutations of the slices among the transitions of each state).` : ''), figures, 'Slices');
    const box = (w, h) => ({ x0: 70, x1: w - 12, y0: 14, y1: h - 44 });
    figure(body, {
      name: 'slices', height: 260,
      draw: (pen, w, h) => {
        const b = box(w, h), most = Math.max(...leaving.map((l) => Math.max(...l))), sx = scale(0, Math.max(1, n - 1), b.x0, b.x1), sy = scale(0, most * 1.05, b.y1, b.y0);
        const flat = (x) => x; flat.ticks = () => []; axes(pen, b, flat, sy, D.summary.slices.expression, 'share of all transitions');
        const every = Math.ceil(n / Math.max(1, Math.floor((b.x1 - b.x0) / 46)));
        H.labels.forEach((l, k) => { if (k % every === 0) pen.text(l, sx(k), b.y1 + 16, { anchor: 'middle', size: 11, fill: css('--muted') }); });
        for (let j = 0; j < s; j++) pen.line(leaving.map((l, k) => [sx(k), sy(l[j])]), colour(j), now.metastate === j ? 3.5 : 1.6);
        if (now.slice != null) pen.line([[sx(now.slice), b.y0], [sx(now.slice), b.y1]], css('--ink'), 1.5, [3, 3]);
      },
      at: (x, y, w, h) => {
        const b = box(w, h), k = Math.round(((x - b.x0) / (b.x1 - b.x0)) * (n - 1));
        if (k < 0 || k >= n || y < b.y0 || y > b.y1) return null;
        const most = leaving[k].map((p, j) => [j, p]).sort((p, q) => q[1] - p[1]).slice(0, 6);
        return { tip: [el('b', { text: sliceName(k) })].concat(bars(most.map(([j, p]) => ['from meta-state ' + (j + 1), p, colour(j)]))), click: () => set({ slice: now.slice === k ? null : k }) };
      },
      rows: () => [['slice', 'from', 'to', 'flow']].concat(H.labels.flatMap((l, k) => Array.from({ length: s * s }, (_, at) => [l, Math.floor(at / s) + 1, (at % s) + 1, flowIn(k, Math.floor(at / s), at % s)]))),
      words: () => `When trips leave each of ${s} meta-states, over ${n} slices`,
    });
    if (C) {
      const order = C.zones.map((c, z) => [z, c]).sort((a, b) => b[1].gain - a[1].gain);
      body.append(el('details', {}, el('summary', { text: 'Which zones change most' }), el('div', { class: 'scroll' }, el('table', {}, el('thead', {}, el('tr', {}, ...['zone', 'trips out of it', 'nats for each held-out trip', 'p-value'].map((t) => el('th', { text: t, scope: 'col' })))), el('tbody', {}, ...order.map(([z, c]) => el('tr', {}, el('td', { text: String(z + 1) }), el('td', { class: 'n', text: count(c.transitions) }), el('td', { class: 'n', text: fixed(c.gain, 3) }), el('td', { class: 'n', text: fixed(c.p_value, 3) }))))))));
    }
  }
  // Where trips lead in the chosen slice: of the chosen state, the chosen meta-state, or all.
  const sliceShare = () => {
    if (now.slice == null || !whereTo) return null;
    const w = now.state != null ? Array.from({ length: s }, (_, j) => membership(now.state, j)) : now.metastate != null ? Array.from({ length: s }, (_, j) => +(j === now.metastate)) : D.metastates.map((m) => m.mass);
    const share = new Float64Array(d);
    let most = 0;
    for (let c = H.starts[now.slice]; c < H.starts[now.slice + 1]; c++) { let x = 0; for (let j = 0; j < s; j++) x += w[j] * whereTo[c * s + j]; share[rowState[c]] = x; most = Math.max(most, x); }
    return most > 0 ? { share, most } : null;
  };
  const sliceTitle = () => 'where trips ' + (now.state != null ? 'from ' + labelOf(now.state) : now.metastate != null ? 'of meta-state ' + (now.metastate + 1) : 'of all') + ' lead, ' + sliceName(now.slice);
  const forecastAt = (i, n) => {               // (u_i K^{n-1}), the law over meta-states after n - 1 latent steps
    let a = Array.from({ length: s }, (_, j) => membership(i, j));
    for (let k = 1; k < n; k++) a = a.map((_, j) => D.latent.reduce((sum, row, l) => sum + a[l] * row[j], 0));
    return a;
  };
  if (lon) {
    const G = D.ground, noun = G.word === 'squares' || G.word === 'hexagons' ? 'cell' : 'place', drawnLon = array(G.lon, Float32Array) || lon, drawnLat = array(G.lat, Float32Array) || lat;
    // The ground of each place, where it has one: its corners as longitude and latitude.
    const begin = G.rings ? array(G.rings.begin, Uint32Array) : null, corners = G.rings ? array(G.rings.corners, Float32Array) : null;
    const ring = (i) => { const list = []; for (let k = begin[i]; k < (i + 1 < d ? begin[i + 1] : corners.length / 2); k++) list.push([corners[2 * k], corners[2 * k + 1]]); return list; };
    const rings = begin ? Array.from({ length: d }, (_, i) => ring(i)) : null;
    const body = card('map', 'Map', (noun === 'cell' ? 'Cells' : 'Places') + ' coloured by zone; with soft memberships, a mixture of meta-states has a mixture of their colours. ' + (G.word === 'voronoi' ? 'Around each place is the area that is nearer to it than to any other place. ' : '') + 'Move the pointer to one to see its memberships, click it to see where its trips lead.', figures, 'Map');
    const find = el('input', { type: 'search', placeholder: `find a ${noun}, then Enter`, 'aria-label': 'Find a state by its label', list: 'labels' });
    find.addEventListener('change', () => { const k = D.labels.indexOf(find.value); set({ state: k < 0 ? null : shown[k] }); });
    const reset = el('button', { type: 'button', text: 'Clear choice', on: { click: () => set({ metastate: null, state: null }) } });
    // Where a few far cells would make the city as small as a dot, the middle 95 % of the cells set the frame, and the far ones are shown on a small map.
    const known = (i) => lon[i] === lon[i] && lat[i] === lat[i];                 // an unknown place is NaN
    const ordered = (a) => Float32Array.from(a).filter((x) => x === x).sort();
    const [ax, ay] = [ordered(lon), ordered(lat)], at = (a, q) => a[Math.min(a.length - 1, Math.max(0, Math.round(q * (a.length - 1))))];
    const cell = D.cell || Math.max(1e-6, 0.8 * Math.sqrt(((at(ax, 0.99) - at(ax, 0.01)) * (at(ay, 0.99) - at(ay, 0.01))) / d));
    // A cell of room, or enough of it for marks that are drawn larger than they are.
    const padX = Math.max(cell, 0.015 * (at(ax, 1) - at(ax, 0))), padY = Math.max(cell, 0.015 * (at(ay, 1) - at(ay, 0)));
    const within = (trim) => ({ w: at(ax, trim) - padX, e: at(ax, 1 - trim) + padX, s: at(ay, trim) - padY, n: at(ay, 1 - trim) + padY });
    // Far places are few, or few go there: 2.5 % of the places, or 1.5 % of the departures, at each side.
    const weighed = (a, cut) => {
      const order = Array.from(a.keys()).filter(known).sort((i, j) => a[i] - a[j]), all = order.reduce((sum, i) => sum + weight[i], 0);
      const end = (list) => { let seen = 0; return a[list.find((i) => { seen += weight[i]; return seen > cut * all; }) ?? list[0]]; };
      return [end(order), end(order.slice().reverse())];
    };
    const byPlace = within(0.025), [ww, we] = weighed(lon, 0.015), [ws, wn] = weighed(lat, 0.015);
    const whole = within(0), core = { w: Math.max(byPlace.w, ww - cell), e: Math.min(byPlace.e, we + cell), s: Math.max(byPlace.s, ws - cell), n: Math.min(byPlace.n, wn + cell) };
    // Room around it: a city is densest in its middle, and thins out.
    const [rx, ry] = [0.35 * (core.e - core.w), 0.35 * (core.n - core.s)], middle = { w: Math.max(whole.w, core.w - rx), e: Math.min(whole.e, core.e + rx), s: Math.max(whole.s, core.s - ry), n: Math.min(whole.n, core.n + ry) }, roomy = (a, b) => a <= 1.5 * b;
    if (corners) for (let k = 0; k < corners.length; k += 2) { whole.w = Math.min(whole.w, corners[k]); whole.e = Math.max(whole.e, corners[k]); whole.s = Math.min(whole.s, corners[k + 1]); whole.n = Math.max(whole.n, corners[k + 1]); }
    const shrinks = !(roomy(whole.e - whole.w, middle.e - middle.w) && roomy(whole.n - whole.s, middle.n - middle.s));
    const inFrame = (f, i) => known(i) && lon[i] >= f.w && lon[i] <= f.e && lat[i] >= f.s && lat[i] <= f.n;
    const frames = [shrinks ? middle : whole, whole], unknown = Array.from(lon).filter((_, i) => !known(i)).length, far = frames.map((f) => Array.from(lon).filter((_, i) => known(i) && !inFrame(f, i)).length);
    let frame = frames[0], outside = far[0];
    listeners.push(() => { frame = frames[+now.all]; outside = far[+now.all]; });
    body.append(el('div', { class: 'controls' }, toggle('Soft memberships', 'soft'), rival ? toggle('Beside ' + D.rival.name, 'beside') : null, far[0] ? toggle(`Far ${noun}s too`, 'all') : null, find, reset,
      el('datalist', { id: 'labels' }, ...D.labels.slice(0, 3000).map((l) => el('option', { value: l })))));
    const squeeze = Math.cos((((frame.s + frame.n) / 2) * Math.PI) / 180);    // a degree of longitude is shorter than one of latitude
    const panels = (w, h) => {
      const n = rival && now.beside ? 2 : 1, gap = 16, side = (w - gap * (n - 1)) / n;
      const k = Math.min(side / ((frame.e - frame.w) * squeeze), (h - 26) / (frame.n - frame.s));
      return Array.from({ length: n }, (_, p) => {
        const used = k * (frame.e - frame.w) * squeeze, x0 = p * (side + gap) + (side - used) / 2;
        return { p, k, x: (l) => x0 + (l - frame.w) * squeeze * k, y: (l) => 24 + (frame.n - l) * k, left: p * (side + gap), width: side };
      });
    };
    const forecastShare = () => {
      if (now.state == null || !V) return null;
      const a = forecastAt(now.state, now.steps), share = new Float64Array(d);
      let most = 0;
      for (let i = 0; i < d; i++) { let x = 0; for (let j = 0; j < s; j++) x += a[j] * V[i * s + j]; share[i] = x; most = Math.max(most, x); }
      return { share, most };
    };
    const draw = (pen, w, h) => {
      const sliced = sliceShare(), going = sliced || forecastShare(), hard = hardNow(), heaviest = weight.reduce((a, b) => Math.max(a, b), 0) || 1;
      panels(w, h).forEach((m) => {
        const theirs = m.p === 1, zone = theirs ? rival : hard;
        pen.rect(m.left, 20, m.width, h - 20, css('--water'));
        pen.text(theirs ? D.rival.name + ', ' + D.rival.k + ' zones' : sliced ? sliceTitle() : 'metastate, ' + (hard === ours ? D.zones : 1 + hard.reduce((a, b) => Math.max(a, b), 0)) + ' zones', m.left, 14, { size: 13, weight: 600 });
        const least = d <= 100 ? 5 : d <= 500 ? 3 : 1.2, cw = Math.max(least, cell * squeeze * m.k - 0.4), ch = Math.max(least, cell * m.k - 0.4);
        const crowd = Math.max(1.5, Math.min(6, 70 / Math.sqrt(d)));
        // Squares are squares, at least a pixel large; places have their ground, or are dots, the busier the larger.
        const mark = (i, fill, alpha = 1) => {
          if (rings && rings[i].length > 2) { pen.polygon(rings[i].map(([x, y]) => [m.x(x), m.y(y)]), alpha < 1 ? mix(css('--water'), fill, alpha) : fill, 1, css('--card'), 0.6); return; }
          if (D.cell) { pen.rect(m.x(drawnLon[i]) - cw / 2, m.y(drawnLat[i]) - ch / 2, cw, ch, fill, alpha); return; }
          if (rings) return;                                                     // another place stands on this spot, and has its ground
          pen.circle(m.x(drawnLon[i]), m.y(drawnLat[i]), crowd * (0.6 + 0.9 * Math.sqrt(weight[i] / heaviest)), alpha < 1 ? mix(css('--water'), fill, alpha) : fill, css('--card'), 0.8);
        };
        pen.within(m.left, 20, m.width, h - 20, () => {
          if (G.hulls && !theirs && hard === ours) G.hulls.forEach((hull, z) => { if (hull.length > 2) pen.polygon(hull.map(([x, y]) => [m.x(x), m.y(y)]), zoneColour(z), 0.16, zoneColour(z), 1); });
          for (let i = 0; i < d; i++) {
            if (!known(i) || (!rings && !inFrame(frame, i))) continue;
            if (!theirs && going) { mark(i, ramp(Math.sqrt(going.share[i] / going.most))); continue; }
            let alpha = 1, fill = zoneColour(zone[i]);
            if (!theirs && now.metastate != null) { alpha = hard === ours ? membership(i, now.metastate) : +(zone[i] === now.metastate); fill = colour(now.metastate); if (D.cell) mark(i, css('--line'), 0.5); }
            else if (!theirs && now.soft && hard === ours) { if (place.has(i)) fill = blend(i); else alpha = 0.15 + 0.85 * (top[i] / 255); }
            mark(i, fill, alpha);
          }
          if (rings) for (let i = 0; i < d; i++) if (known(i) && d <= 3000) pen.circle(m.x(lon[i]), m.y(lat[i]), Math.min(1.6, crowd), css('--ink'));
          // Few places have room for their names.
          if (noun === 'place' && d <= 40) for (let i = 0; i < d; i++) if (known(i)) pen.text(clip(labelOf(i), 16), m.x(drawnLon[i]) + 5, m.y(drawnLat[i]) - 4, { size: 10 });
          if (!theirs && now.state != null && known(now.state)) pen.circle(m.x(drawnLon[now.state]), m.y(drawnLat[now.state]), 7, null, css('--ink'), 2.5);
        });
        if (outside && !theirs) everything(pen, m, h, zone);
      });
      const missing = [outside ? `${outside} far ${noun}${outside === 1 ? '' : 's'} on the small map only` : '', unknown ? `${unknown} state${unknown === 1 ? '' : 's'} without a place` : ''].filter((t) => t).join(', ');
      if (missing) { pen.rect(w - 6.2 * missing.length - 8, h - 20, 6.2 * missing.length + 8, 20, css('--card'), 0.85); pen.text(missing, w - 4, h - 6, { anchor: 'end', size: 11, fill: css('--muted') }); }
    };
    // All of it in a corner, with the frame of the large map.
    const everything = (pen, m, h, zone) => {
      const wide = Math.min(150, m.width / 3), k = Math.min(wide / ((whole.e - whole.w) * squeeze), 110 / (whole.n - whole.s));
      const w = k * (whole.e - whole.w) * squeeze, tall = k * (whole.n - whole.s), x0 = m.left + 6, y0 = h - tall - 6;
      const x = (l) => x0 + (l - whole.w) * squeeze * k, y = (l) => y0 + (whole.n - l) * k;
      pen.rect(x0, y0, w, tall, css('--card'), 0.92); pen.frame(x0, y0, w, tall, css('--line'));
      for (let i = 0; i < d; i++) if (known(i)) pen.rect(x(lon[i]) - 0.8, y(lat[i]) - 0.8, 1.6, 1.6, zoneColour(zone[i]));
      pen.frame(x(frame.w), y(frame.n), Math.max(2, x(frame.e) - x(frame.w)), Math.max(2, y(frame.s) - y(frame.n)), css('--ink'));
    };
    // Cells by their place on a coarse grid, so that a pointer finds its cell at once.
    const grid = new Map(), key = (x, y) => Math.round(x / cell) + ',' + Math.round(y / cell);
    for (let i = 0; i < d; i++) { if (!known(i)) continue; const k = key(drawnLon[i], drawnLat[i]); if (!grid.has(k)) grid.set(k, []); grid.get(k).push(i); }
    const nearest = (x, y) => {
      let best = null, least = rings ? Infinity : 2 * cell * cell;
      if (rings) {                              // on the ground of the nearest place, wherever that is
        for (let i = 0; i < d; i++) { const q = ((lon[i] - x) * squeeze) ** 2 + (lat[i] - y) ** 2; if (rings[i].length > 2 && q < least) { least = q; best = i; } }
        return best;
      }
      for (let dx = -1; dx <= 1; dx++) for (let dy = -1; dy <= 1; dy++) for (const i of grid.get(key(x + dx * cell, y + dy * cell)) || []) {
        const q = ((drawnLon[i] - x) * squeeze) ** 2 + (drawnLat[i] - y) ** 2;
        if (q < least) { least = q; best = i; }
      }
      return best;
    };
    figure(body, {
      name: 'map', height: (w) => {
        const n = rival && now.beside ? 2 : 1, aspect = (frame.n - frame.s) / ((frame.e - frame.w) * squeeze);
        return Math.max(260, Math.min(760, ((w - 16 * (n - 1)) / n) * aspect + 26));
      }, draw,
      at: (x, y, w, h) => {
        for (const m of panels(w, h)) {
          if (x < m.left || x > m.left + m.width) continue;
          const i = nearest((x - m.x(0)) / (squeeze * m.k), (m.y(0) - y) / m.k);
          if (i == null) return null;
          const more = m.p === 1 ? [el('div', { text: D.rival.name + ': zone ' + (rival[i] + 1) })] : [];
          return { tip: aboutState(i).concat(more), click: () => set({ state: now.state === i ? null : i }) };
        }
        return null;
      },
      rows: () => [['label', 'lon', 'lat', 'weight', 'metastate', 'zone'].concat(rival ? ['rival_zone'] : [])].concat(Array.from(shown, (i) => [labelOf(i), lon[i], lat[i], weight[i], home[i] + 1, ours[i] + 1].concat(rival ? [rival[i] + 1] : []))),
      words: () => `Map of ${d} ${noun}s in ${D.zones} zones` + (rival ? `, beside the zones of ${D.rival.name}` : ''),
    });
  } else {
    const order = Array.from(shown).sort((a, b) => home[a] - home[b] || weight[b] - weight[a]), most = Math.min(order.length, 400);
    const kept = order.length > most ? Array.from(shown).sort((a, b) => weight[b] - weight[a]).slice(0, most).sort((a, b) => home[a] - home[b] || weight[b] - weight[a]) : order;
    const body = card('map', 'Memberships', (order.length > most ? 'The ' + most + ' busiest states' : 'All states') + ', one column each, ordered by meta-state; the height of a colour is the membership. Move the pointer to a state for details, click it to see where it leads.', figures, 'Memberships');
    const find = el('input', { type: 'search', placeholder: 'find a state, then Enter', 'aria-label': 'Find a state by its label', list: 'labels' });
    find.addEventListener('change', () => { const k = D.labels.indexOf(find.value); set({ state: k < 0 ? null : shown[k] }); });
    body.append(el('div', { class: 'controls' }, toggle('Soft memberships', 'soft'), find, el('button', { type: 'button', text: 'Clear choice', on: { click: () => set({ metastate: null, state: null }) } }),
      el('datalist', { id: 'labels' }, ...D.labels.slice(0, 3000).map((l) => el('option', { value: l })))));
    figure(body, {
      name: 'memberships', height: 240,
      draw: (pen, w, h) => {
        const step = w / kept.length;
        kept.forEach((i, k) => {
          let y = h - 4;
          for (let j = 0; j < s; j++) {
            const m = now.soft ? membership(i, j) : +(home[i] === j);
            if (m <= 0) continue;
            const tall = m * (h - 12);
            y -= tall;
            pen.rect(k * step, y, Math.max(0.6, step - 0.3), tall, colour(j), now.metastate == null || now.metastate === j ? 1 : 0.15);
          }
          if (now.state === i) pen.frame(k * step, 4, step, h - 8, css('--ink'), 2);
        });
      },
      at: (x, y, w) => { const i = kept[Math.floor((x / w) * kept.length)]; return i == null ? null : { tip: aboutState(i), click: () => set({ state: now.state === i ? null : i }) }; },
      rows: () => [['label', 'weight', 'metastate', 'zone'].concat(Array.from({ length: s }, (_, j) => 'membership_' + (j + 1)))].concat(kept.map((i) => [labelOf(i), weight[i], home[i] + 1, ours[i] + 1].concat(Array.from({ length: s }, (_, j) => membership(i, j))))),
      words: () => `Memberships of ${kept.length} states in ${s} meta-states`,
    });
  }

  // ---------------------------------------------------------------- 3. the numbers of meta-states, and the lambda path
  if (D.ranks && D.ranks.points.length > 1) {
    const R = D.ranks.points, chosen = D.ranks.chosen;
    const body = card('ranks', 'How many meta-states', D.ranks.sentence + ' Bars are one standard error of the difference to the best number; hollow points were computed on some folds only; the dashed line is the score of the smoothed counts themselves.', figures, 'Ranks');
    const scales = (w, h) => {
      const b = { x0: 70, x1: w - 20, y0: 14, y1: h - 44 }, all = R.flatMap((r) => [r.score - r.error, r.score + r.error]).concat([D.ranks.counts]);
      const lo = Math.min(...all), hi = Math.max(...all), pad = 0.06 * (hi - lo || 1), first = R[0].rank, last = R[R.length - 1].rank, side = 0.03 * (last - first);
      return { b, sx: scale(first - side, last + side, b.x0, b.x1), sy: scale(lo - pad, hi + pad, b.y1, b.y0) };
    };
    figure(body, {
      name: 'ranks', height: 300,
      draw: (pen, w, h) => {
        const { b, sx, sy } = scales(w, h);
        axes(pen, b, sx, sy, 'meta-states', 'held-out log-likelihood', (t) => (Number.isInteger(t) ? String(t) : ''));
        pen.line([[b.x0, sy(D.ranks.counts)], [b.x1, sy(D.ranks.counts)]], '#b97f00', 1.5, [4, 3]);
        pen.line(R.map((r) => [sx(r.rank), sy(r.score)]), '#0072b2', 2);
        R.forEach((r, k) => {
          const blue = k === chosen ? '#d55e00' : '#0072b2';
          if (r.error > 0) pen.line([[sx(r.rank), sy(r.score - r.error)], [sx(r.rank), sy(r.score + r.error)]], '#0072b2', 1.2);
          pen.circle(sx(r.rank), sy(r.score), k === chosen ? 7 : 4, r.first_look ? css('--card') : blue, r.first_look ? blue : css('--card'), 1.5);
        });
      },
      at: (px, py, w, h) => {
        const { sx } = scales(w, h);
        let best = null, least = 24;
        R.forEach((r, k) => { const q = Math.abs(sx(r.rank) - px); if (q < least) { least = q; best = k; } });
        if (best == null) return null;
        const r = R[best], how = r.behind > 0 ? `behind the best by ${number(r.behind)} ± ${number(r.error)}` : 'the best';
        return { tip: [el('b', { text: count(r.rank) + (r.rank === 1 ? ' meta-state' : ' meta-states') }), el('div', { text: 'held-out ' + fixed(r.score, 5) }), el('div', { text: how + (r.first_look ? ', on some folds only' : '') })] };
      },
      rows: () => [['metastates', 'held_out', 'behind_best', 'behind_standard_error', 'first_look', 'chosen']].concat(R.map((r, k) => [r.rank, r.score, r.behind, r.error, r.first_look ? 'yes' : '', k === chosen ? 'yes' : ''])),
      words: () => `Held-out scores of ${R.length} numbers of meta-states; chosen: ${R[chosen].rank}`,
    });
  }
  if (D.path && D.path.rows.length > 1) {
    const R = D.path.rows, scored = R.some((r) => r.score != null);
    const body = card('path', 'Lambda path', D.path.sentence, figures, 'Path');
    const slider = el('input', { type: 'range', min: '0', max: String(R.length - 1), step: '1', value: String(now.point), 'aria-label': 'Point of the lambda path' });
    const tell = el('output', {});
    slider.addEventListener('input', () => set({ point: Number(slider.value) }));
    const say = () => { const r = R[now.point]; tell.textContent = `lambda ${number(r.lambda)} · rank ${r.rank} · ${r.gap == null ? 'gap not proven' : 'certified gap ' + number(r.gap)}` + (r.score != null ? ` · held-out ${fixed(r.score, 5)}` : '') + (now.point === D.path.chosen ? ' · chosen' : ''); };
    listeners.push(() => { slider.value = String(now.point); say(); });
    body.append(el('div', { class: 'controls' }, el('label', {}, 'lambda', slider), tell));
    const y = (r) => (scored ? r.score : r.objective);
    const box = (w, h) => ({ x0: 70, x1: w - 60, y0: 14, y1: h - 44 });
    const scales = (w, h) => {
      const b = box(w, h), used = R.filter((r) => y(r) != null), lo = Math.min(...used.map((r) => y(r) - (r.se || 0))), hi = Math.max(...used.map((r) => y(r) + (r.se || 0))), pad = 0.06 * (hi - lo || 1);
      return { b, sx: scale(R[0].lambda, R[R.length - 1].lambda, b.x0, b.x1, true), sy: scale(lo - pad, hi + pad, b.y1, b.y0), sr: scale(0, Math.max(...R.map((r) => r.rank)), b.y1, b.y0) };
    };
    figure(body, {
      name: 'path', height: 300,
      draw: (pen, w, h) => {
        const { b, sx, sy, sr } = scales(w, h);
        axes(pen, b, sx, sy, 'lambda (falling)', scored ? 'held-out log-likelihood' : 'objective');
        const steps = []; R.forEach((r, k) => { if (k) steps.push([sx(r.lambda), sr(R[k - 1].rank)]); steps.push([sx(r.lambda), sr(r.rank)]); });
        pen.line(steps, '#e69f00', 1.5, [4, 3]);
        sr.ticks(4).forEach((t) => pen.text(String(t), b.x1 + 8, sr(t) + 4, { size: 11, fill: '#b97f00' }));
        pen.text('rank', b.x1 + 44, (b.y0 + b.y1) / 2, { size: 12, fill: '#b97f00', anchor: 'middle', rotate: 90 });
        pen.line(R.filter((r) => y(r) != null).map((r) => [sx(r.lambda), sy(y(r))]), '#0072b2', 2);
        R.forEach((r, k) => {
          if (y(r) == null) return;
          if (r.se) pen.line([[sx(r.lambda), sy(y(r) - r.se)], [sx(r.lambda), sy(y(r) + r.se)]], '#0072b2', 1.2);
          pen.circle(sx(r.lambda), sy(y(r)), k === now.point ? 7 : 4, k === D.path.chosen ? '#d55e00' : '#0072b2', css('--card'), 1.5);
        });
      },
      at: (px, py, w, h) => {
        const { sx } = scales(w, h);
        let best = null, least = 24;
        R.forEach((r, k) => { const q = Math.abs(sx(r.lambda) - px); if (q < least) { least = q; best = k; } });
        return best == null ? null : { tip: [el('b', { text: 'lambda ' + number(R[best].lambda) }), el('div', { text: 'rank ' + R[best].rank + ', gap ' + (R[best].gap == null ? 'not proven' : number(R[best].gap)) })], click: () => set({ point: best }) };
      },
      rows: () => [['lambda', 'rank', 'objective', 'certified_gap', 'score', 'standard_error']].concat(R.map((r) => [r.lambda, r.rank, r.objective, r.gap ?? '', r.score ?? '', r.se ?? ''])),
      words: () => `Path over ${R.length} values of lambda; chosen: ${number(R[D.path.chosen].lambda)} with rank ${R[D.path.chosen].rank}`,
    });
  }

  // ---------------------------------------------------------------- 4. the meta-states
  {
    const body = card('metastates', 'Meta-states', 'Click a line to highlight the meta-state in all figures. Anchors are the states that belong to it most, with their membership; destinations are where its trips lead.', figures, 'Meta-states');
    const head = ['', 'states', 'mass', 'stationary', 'anchors', 'destinations'];
    const rows = D.metastates.map((m, j) => {
      const row = el('tr', { class: 'pick', tabindex: '0', on: { click: () => pick(j), keydown: (e) => { if (e.key === 'Enter' || e.key === ' ') { e.preventDefault(); pick(j); } } } },
        el('td', {}, el('span', { class: 'swatch', style: { background: colour(j) } }), ' ' + (j + 1) + (nameOf(j) ? ' ' + nameOf(j) : '')), el('td', { class: 'n', text: count(m.size) }), el('td', { class: 'n', text: percent(m.mass) }),
        el('td', { class: 'n', text: D.stationary ? percent(D.stationary[j]) : '–' }), el('td', { class: 'label', dir: 'auto', text: m.anchors.map(([l, x]) => l + ' ' + percent(x)).join(' · ') }),
        el('td', { class: 'label', dir: 'auto', text: m.destinations.map(([l, x]) => l + ' ' + percent(x)).join(' · ') }));
      listeners.push(() => { row.classList.toggle('on', now.metastate === j); row.setAttribute('aria-selected', String(now.metastate === j)); });
      return row;
    });
    body.append(el('div', { class: 'scroll' }, el('table', {}, el('thead', {}, el('tr', {}, ...head.map((t, k) => el('th', { text: t, class: k > 0 && k < 4 ? 'n' : '', scope: 'col' })))), el('tbody', {}, ...rows))));
    body.tool('CSV', () => save('metastates.csv', new Blob([csvOf([['metastate', 'size', 'mass', 'stationary', 'anchors', 'destinations']].concat(D.metastates.map((m, j) => [j + 1, m.size, m.mass, D.stationary ? D.stationary[j] : '', m.anchors.map((x) => x.join(' ')).join('; '), m.destinations.map((x) => x.join(' ')).join('; ')])))], { type: 'text/csv' })), 'Download the meta-states as CSV');
  }

  // ---------------------------------------------------------------- 5. the latent chain
  const K = D.latent, mass = D.stationary || D.metastates.map((m) => m.mass);
  if (K.length) {                               // none where origins and destinations are two sets
    const pair = el('div', { class: 'grid2' }); figures.append(pair);
    const flow = card('latent', 'Latent chain', 'Circles are meta-states, sized by their stationary share; the width of an arc is the flow between two of them, bent to the right of its direction.', pair, 'Latent chain');
    const spots = (w, h) => { const r = Math.min(w, h) / 2 - 46; return mass.map((_, j) => { const a = (2 * Math.PI * j) / s - Math.PI / 2; return [w / 2 + r * Math.cos(a), h / 2 + r * Math.sin(a)]; }); };
    // In a slice: its own flows, circles by what leaves then, widths on one scale for all slices.
    const massNow = () => { if (now.slice == null) return mass; const sum = leaving[now.slice].reduce((a, b) => a + b, 0) || 1; return leaving[now.slice].map((x) => x / sum); };
    const stepNow = () => (now.slice == null ? K : K.map((_, i) => K.map((_, j) => (leaving[now.slice][i] > 0 ? flowIn(now.slice, i, j) / leaving[now.slice][i] : 0))));
    const radius = (j) => 5 + 26 * Math.sqrt(massNow()[j]);
    const flowsBetween = (f) => { const list = []; for (let i = 0; i < s; i++) for (let j = 0; j < s; j++) if (i !== j) list.push([i, j, f(i, j)]); return list.sort((a, b) => b[2] - a[2]); };
    const edges = flowsBetween((i, j) => mass[i] * K[i][j]);
    const edgesNow = () => (now.slice == null ? edges : flowsBetween((i, j) => flowIn(now.slice, i, j)));
    let widestSlice = 0;
    if (H) for (let h = 0; h < H.labels.length; h++) for (let i = 0; i < s; i++) for (let j = 0; j < s; j++) if (i !== j) widestSlice = Math.max(widestSlice, flowIn(h, i, j));
    if (H) listeners.push(() => { flow.querySelector('h2').textContent = now.slice == null ? 'Latent chain' : 'Flows, ' + sliceName(now.slice); });
    figure(flow, {
      name: 'latent-flow', height: (w) => Math.min(430, Math.max(300, w)),
      draw: (pen, w, h) => {
        const at = spots(w, h), drawn = edgesNow().slice(0, Math.max(60, 3 * s)).filter((e) => e[2] > 0), widest = now.slice == null ? (drawn.length ? drawn[0][2] : 1) : widestSlice;
        for (const [i, j, f] of [...drawn].reverse()) {
          const [x0, y0] = at[i], [x1, y1] = at[j], bend = 0.18, on = now.metastate == null || now.metastate === i || now.metastate === j;
          pen.curve(x0, y0, (x0 + x1) / 2 - bend * (y1 - y0), (y0 + y1) / 2 + bend * (x1 - x0), x1, y1, colour(i), 0.6 + 9 * (f / widest), on ? 0.6 : 0.06);
        }
        at.forEach(([x, y], j) => { pen.circle(x, y, radius(j), colour(j), now.metastate === j ? css('--ink') : css('--card'), now.metastate === j ? 3 : 1.5); pen.text(String(j + 1), x, y + 4, { anchor: 'middle', size: 12, weight: 650, fill: '#ffffff' }); });
      },
      at: (x, y, w, h) => {
        const j = spots(w, h).findIndex(([a, b], k) => (a - x) ** 2 + (b - y) ** 2 < (radius(k) + 4) ** 2);
        if (j < 0) return null;
        const to = stepNow()[j].map((p, l) => [l, p]).sort((a, b) => b[1] - a[1]).slice(0, 5);
        return { tip: [el('b', { text: 'meta-state ' + (j + 1) }), el('div', { text: (now.slice == null ? 'stationary share ' : 'share of departures then ') + percent(massNow()[j]) })].concat(bars(to.map(([l, p]) => ['to ' + (l + 1), p, colour(l)]))), click: () => pick(j) };
      },
      rows: () => [['from', 'to', 'flow']].concat(edgesNow().map(([i, j, f]) => [i + 1, j + 1, f])),
      words: () => `Flow diagram of the latent chain with ${s} meta-states`,
    });
    const heat = card('latent-heat', 'One step, in numbers', 'Row: from; column: to. Each row sums to one.', pair, null);
    const cellAt = (w, h) => { const side = Math.min((w - 34) / s, (h - 30) / s); return { side, x0: 30, y0: 24 }; };
    figure(heat, {
      name: 'latent-chain', height: (w) => Math.min(430, Math.max(300, w)),
      draw: (pen, w, h) => {
        const { side, x0, y0 } = cellAt(w, h);
        stepNow().forEach((row, i) => row.forEach((p, j) => {
          pen.rect(x0 + j * side, y0 + i * side, side - 0.7, side - 0.7, ramp(Math.sqrt(p)), now.metastate == null || now.metastate === i || now.metastate === j ? 1 : 0.25);
          if (side > 34) pen.text(p < 0.005 ? '' : p.toFixed(2).replace(/^0/, ''), x0 + (j + 0.5) * side, y0 + (i + 0.5) * side + 4, { anchor: 'middle', size: 11, fill: p > 0.4 ? '#14181c' : '#ffffff' });
        }));
        const every = Math.ceil(16 / side);
        for (let j = 0; j < s; j += every) { pen.text(String(j + 1), x0 + (j + 0.5) * side, y0 - 6, { anchor: 'middle', size: 11, fill: css('--muted') }); pen.text(String(j + 1), x0 - 6, y0 + (j + 0.5) * side + 4, { anchor: 'end', size: 11, fill: css('--muted') }); }
      },
      at: (x, y, w, h) => { const { side, x0, y0 } = cellAt(w, h), j = Math.floor((x - x0) / side), i = Math.floor((y - y0) / side); const P = stepNow(); return P[i] && P[i][j] != null ? { tip: [el('b', { text: `${i + 1} → ${j + 1}` }), el('div', { text: 'probability ' + fixed(P[i][j], 4) })], click: () => pick(i) } : null; },
      rows: () => [['from'].concat(K.map((_, j) => j + 1))].concat(K.map((r, i) => [i + 1].concat(r))),
      words: () => `Transition matrix of the latent chain, ${s} by ${s}`,
    });
    const second = el('div', { class: 'grid2' }); figures.append(second);
    if (D.timescales && D.timescales.length) {
      const T = D.timescales, body = card('timescales', 'Timescales', 'How long the slow processes take, in ' + D.time_unit + ': each bar is one eigenvalue of the latent chain' + (T.some((t) => t.interval) ? '; the whiskers are 90 % intervals, computed from how much each part of the data changes the timescale.' : '.'), second, 'Timescales');
      figure(body, {
        name: 'timescales', height: 280,
        draw: (pen, w, h) => {
          const b = { x0: 70, x1: w - 12, y0: 14, y1: h - 44 }, ends = (t) => (t.interval || []).filter((x) => x > 0), times = T.flatMap((t) => [t.timescale].concat(ends(t))).filter((t) => t > 0 && Number.isFinite(t));
          if (!times.length) return;
          const hi = Math.max(...times) * 1.3, lo = Math.min(...times, hi / 10) / 1.5, sy = scale(lo, hi, b.y1, b.y0, true), sx = scale(1.5, T.length + 1.5, b.x0, b.x1);
          const flat = (x) => x; flat.ticks = () => []; axes(pen, b, flat, sy, 'eigenvalue number', D.time_unit);
          T.forEach((t, k) => { if (!(t.timescale > 0) || !Number.isFinite(t.timescale)) return; const x = sx(k + 2), wide = Math.max(2, ((b.x1 - b.x0) / T.length) * 0.62); pen.rect(x - wide / 2, sy(t.timescale), wide, b.y1 - sy(t.timescale), t.im ? '#cc79a7' : '#0072b2'); if (t.interval && t.interval[0] > 0) { const [a, z] = [sy(t.interval[0]), t.interval[1] == null ? b.y0 : sy(t.interval[1])], half = Math.min(5, wide / 2); pen.line([[x, a], [x, z]], css('--ink'), 1.3); [a, z].forEach((y) => pen.line([[x - half, y], [x + half, y]], css('--ink'), 1.3)); } if (T.length <= 24) pen.text(String(k + 2), x, b.y1 + 15, { anchor: 'middle', size: 11, fill: css('--muted') }); });
        },
        rows: () => [['number', 're', 'im', 'timescale', 'lower', 'upper']].concat(T.map((t, k) => [k + 2, t.re, t.im, t.timescale, ...(t.interval || ['', '']).map((x) => x ?? 'inf')])),
        words: () => `Implied timescales: ${T.slice(0, 4).map((t) => fixed(t.timescale, 3)).join(', ')} ${D.time_unit}`,
      });
    }
    const ahead = card('forecast', 'Forecast', 'Where a trip is after n steps. Click a cell or find a state above; without one, the chosen meta-state (or the first) is the start.', second, 'Forecast');
    const most = D.horizon, slider = el('input', { type: 'range', min: '1', max: String(most), value: '1', 'aria-label': 'Steps ahead' }), tell = el('output', {});
    slider.addEventListener('input', () => set({ steps: Number(slider.value) }));
    ahead.append(el('div', { class: 'controls' }, el('label', {}, 'steps', slider), tell));
    const begin = () => (now.state != null ? Array.from({ length: s }, (_, j) => membership(now.state, j)) : Array.from({ length: s }, (_, j) => +(j === (now.metastate ?? 0))));
    // Law over the meta-states at departure number n: u K^(n-1).
    const laws = () => { const list = [begin()]; for (let n = 1; n <= most; n++) { const a = list[n - 1]; list.push(a.map((_, j) => K.reduce((sum, row, l) => sum + a[l] * row[j], 0))); } return list; };
    listeners.push(() => { slider.value = String(now.steps); tell.textContent = `${now.steps} from ${now.state != null ? labelOf(now.state) : 'meta-state ' + ((now.metastate ?? 0) + 1)}`; });
    figure(ahead, {
      name: 'forecast', height: 280,
      draw: (pen, w, h) => {
        const b = { x0: 70, x1: w - 12, y0: 14, y1: h - 44 }, L = laws(), hi = Math.max(...L.map((a) => Math.max(...a))), sx = scale(0, most, b.x0, b.x1), sy = scale(0, hi * 1.05, b.y1, b.y0);
        axes(pen, b, sx, sy, 'steps', 'share');
        for (let j = 0; j < s; j++) pen.line(L.map((a, n) => [sx(n), sy(a[j])]), colour(j), now.metastate === j ? 3.5 : 1.8);
        pen.line([[sx(now.steps), b.y0], [sx(now.steps), b.y1]], css('--ink'), 1, [3, 3]);
      },
      rows: () => [['step'].concat(K.map((_, j) => 'metastate_' + (j + 1)))].concat(laws().map((a, n) => [n].concat(a))),
      words: () => `Forecast of the meta-states over ${most} steps`,
    });
    drawKinetics({ D, K, mass, s, el, css, card, figure, figures, axes, scale, colour, fixed, percent, number, ramp, now, set, pick, bars, listeners });
  }

  // ---------------------------------------------------------------- 6. P and X
  if (D.heat) {
    const n = D.heat.bins, P = array(D.heat.p, Float32Array), X = array(D.heat.x, Float32Array);
    const body = card('matrices', 'Data and model', 'Share of all moves from the states of a row to those of a column, states ordered by zone and binned' + (D.heat.states_a_bin > 1 ? ' (' + fixed(D.heat.states_a_bin, 3) + ' states a bin)' : '') + '. On the left what was counted, on the right what the model says. Brighter means more, on a logarithmic scale.', figures, 'Data and model');
    const most = P.reduce((a, b) => Math.max(a, b), 0) || 1, shade = (x) => (x <= 0 ? 0 : Math.max(0, 1 + Math.log10(x / most) / 5));
    const panel = (w) => { const side = Math.min((w - 24) / 2, 540); return { side, left: [(w - 2 * side - 24) / 2, (w - 2 * side - 24) / 2 + side + 24] }; };
    const picture = (A) => {
      const c = el('canvas', { width: n, height: n }), g = c.getContext('2d'), image = g.createImageData(n, n);
      for (let k = 0; k < n * n; k++) { const hex = ramp(shade(A[k])); for (let q = 0; q < 3; q++) image.data[4 * k + q] = parseInt(hex.slice(1 + 2 * q, 3 + 2 * q), 16); image.data[4 * k + 3] = 255; }
      g.putImageData(image, 0, 0); return c;
    };
    const pictures = [picture(P), picture(X)];
    figure(body, {
      name: 'matrices', height: (w) => panel(w).side + 26,
      draw: (pen, w) => {
        const { side, left } = panel(w), unit = side / n;
        [['counted', P], ['model', X]].forEach(([title, A], k) => {
          pen.text(title, left[k], 14, { size: 13, weight: 600 });
          if (pen.c) { pen.c.imageSmoothingEnabled = false; pen.c.drawImage(pictures[k], left[k], 22, side, side); }
          else for (let i = 0; i < n; i++) for (let j = 0; j < n; j++) pen.rect(left[k] + j * unit, 22 + i * unit, unit + 0.05, unit + 0.05, ramp(shade(A[i * n + j])));
          D.heat.borders.forEach((b) => { const t = (b / D.states) * side; pen.line([[left[k] + t, 22], [left[k] + t, 22 + side]], 'rgba(255,255,255,.35)', 0.7); pen.line([[left[k], 22 + t], [left[k] + side, 22 + t]], 'rgba(255,255,255,.35)', 0.7); });
          if (paired && now.metastate != null) { const from = (now.metastate ? D.heat.borders[now.metastate - 1] : 0) / D.states, to = (D.heat.borders[now.metastate] ?? D.states) / D.states; pen.frame(left[k], 22 + from * side, side, Math.max(1, (to - from) * side), '#d55e00', 2); }
        });
      },
      at: (x, y, w) => {
        const { side, left } = panel(w);
        for (let k = 0; k < 2; k++) {
          const j = Math.floor(((x - left[k]) / side) * n), i = Math.floor(((y - 22) / side) * n);
          if (i < 0 || j < 0 || i >= n || j >= n) continue;
          return { tip: [el('b', { text: `bins ${i + 1} → ${j + 1}` }), el('div', { text: 'counted ' + number(P[i * n + j]) }), el('div', { text: 'model ' + number(X[i * n + j]) })] };
        }
        return null;
      },
      rows: () => [['row', 'column', 'counted', 'model']].concat(Array.from(P, (p, k) => [Math.floor(k / n) + 1, (k % n) + 1, p, X[k]])),
      words: () => `Heat maps of the counted matrix and of the model, ${n} by ${n} bins`,
    });
  }

  // ---------------------------------------------------------------- 7. convergence
  if (D.trace && D.trace.length > 1) {
    const T = D.trace, body = card('convergence', 'Convergence', 'The distance of the objective from the lower bound that the solver used while it ran. That bound is an estimate; what is proven is at the top of the page. Dashed lines mark columns appended (up) and removed (down).', figures, 'Convergence');
    figure(body, {
      name: 'convergence', height: 300,
      draw: (pen, w, h) => {
        const b = { x0: 78, x1: w - 60, y0: 14, y1: h - 44 }, seen = T.filter((t) => t.objective != null && t.objective > 0);
        const gap = seen.map((t) => [t.t, Math.max(1e-12, (t.objective - t.bound) / t.objective)]);
        const sx = scale(0, T[T.length - 1].t || 1, b.x0, b.x1), lo = Math.min(...gap.map((g) => g[1])), sy = scale(Math.max(1e-12, lo / 2), Math.min(2, 2 * Math.max(...gap.map((g) => g[1]))), b.y1, b.y0, true), sr = scale(0, Math.max(...T.map((t) => t.rank)) || 1, b.y1, b.y0);
        axes(pen, b, sx, sy, 'seconds', 'estimated gap while solving');
        D.events.forEach((e) => pen.line([[sx(e.t), b.y0], [sx(e.t), b.y1]], e.to > e.from ? '#009e73' : '#d55e00', 1, [3, 3]));
        const steps = []; seen.forEach((t, k) => { if (k) steps.push([sx(t.t), sr(seen[k - 1].rank)]); steps.push([sx(t.t), sr(t.rank)]); });
        pen.line(steps, '#e69f00', 1.5, [4, 3]);
        sr.ticks(4).forEach((t) => pen.text(String(t), b.x1 + 8, sr(t) + 4, { size: 11, fill: '#b97f00' }));
        pen.text('rank', b.x1 + 44, (b.y0 + b.y1) / 2, { size: 12, fill: '#b97f00', anchor: 'middle', rotate: 90 });
        pen.line(gap.map(([t, g]) => [sx(t), sy(g)]), '#0072b2', 2);
      },
      rows: () => [['seconds', 'sweep', 'rank', 'objective', 'estimated_lower_bound', 'kkt']].concat(T.map((t) => [t.t, t.sweep, t.rank, t.objective ?? '', t.bound, t.kkt ?? ''])),
      words: () => `Estimated gap over ${fixed(T[T.length - 1].t, 3)} seconds`,
    });
  }

  // ---------------------------------------------------------------- 8. rivals, what was left out, provenance
  const table = (rows) => el('div', { class: 'scroll' }, el('table', {}, el('thead', {}, el('tr', {}, ...rows[0].map((t) => el('th', { text: t, scope: 'col' })))), el('tbody', {}, ...rows.slice(1).map((r) => el('tr', {}, ...r.map((t) => el('td', { class: 'label', dir: 'auto', text: String(t) })))))));
  {
    const body = card('left-out', 'What was left out', S.ledger.length ? 'Everything that was left out is listed here: of ' + count(S.rows) + ' rows read, ' + count(S.rows_counted) + ' were counted.' : 'Nothing was left out: every row that was read was counted.', figures, 'Left out');
    if (S.ledger.length) body.append(table([['reason', 'count', 'of', 'for example']].concat(S.ledger.map((e) => [e.reason, count(e.count), e.unit, e.examples.slice(0, 3).join(' · ')]))));
    if (S.hints.length) body.append(el('ul', {}, ...S.hints.map((h) => el('li', { text: h }))));
  }
  {
    const body = card('provenance', 'Provenance', 'Everything that is needed to get the same numbers again.', figures, 'Provenance');
    body.append(el('pre', { text: S.command }));
    const e = S.errors, rows = [['what', 'value'], ['version', S.version], ['seed', S.seed], ['status', S.status], ['objective', S.objective], ['proven lower bound', S.lower_bound ?? 'not proven'], ['proof', S.bound_proof + (S.bound_failure_probability == null ? '' : ' (fails with probability at most ' + S.bound_failure_probability + ')')], ['certified gap', e.certified_gap ?? 'not proven'], ['objective of the best single meta-state', S.objective_of_one ?? ''], ['explained gap', e.explained_gap ?? 'not proven'], ['heuristic gap (relDG)', e.rel_dg], ['GE', e.ge], ['relLE1, relLE2', e.rel_le1 + ', ' + e.rel_le2], ['sweeps', S.iterations]];
    if (S.read_as) rows.push(['data', S.read_as]);
    S.inputs.forEach((f) => rows.push(['input ' + f.name, f.bytes + ' bytes, SHA-256 ' + f.sha256]));
    body.append(table(rows), el('details', {}, el('summary', { text: 'All settings' }), el('pre', { text: JSON.stringify(S.settings, null, 2) })));
  }

  // ---------------------------------------------------------------- light and dark
  const theme = document.getElementById('theme');
  const dark = (on) => { document.documentElement.dataset.theme = on ? 'dark' : 'light'; theme.setAttribute('aria-pressed', String(on)); theme.textContent = on ? 'Light' : 'Dark'; listeners.forEach((f) => f()); };
  theme.addEventListener('click', () => dark(document.documentElement.dataset.theme !== 'dark'));
  dark(matchMedia('(prefers-color-scheme: dark)').matches);
  addEventListener('beforeprint', () => listeners.forEach((f) => f()));
  document.documentElement.dataset.ready = 'yes';
})();
