'use strict';
// Times, checks and fluxes of the meta-states. page.js hands over `page`: the data, the tools and the pens.
const drawKinetics = (page) => {
  const { D, K, mass, s, el, css, card, figure, figures, axes, scale, colour, fixed, percent, number, ramp, now, set, pick, bars, listeners } = page;
  const story = D.kinetics;
  if (!story) return;
  const [first, second] = [0, 1].map(() => { const row = el('div', { class: 'grid2' }); figures.append(row); return row; });
  const lags = story.lags, frames = 'frames of the data';
  const band = (pen, points, sx, sy, fill) => {           // points: [x, low, high], drawn as thin upright strips
    for (let k = 1; k < points.length; k++) {
      const [[x0, a0, b0], [x1, a1, b1]] = [points[k - 1], points[k]], [p0, p1] = [sx(x0), sx(x1)], steps = Math.max(2, Math.ceil((p1 - p0) / 2));
      for (let m = 0; m < steps; m++) {
        const t = (m + 0.5) / steps, top = sy(b0) * (1 - t) + sy(b1) * t, low = sy(a0) * (1 - t) + sy(a1) * t;
        pen.rect(p0 + (m / steps) * (p1 - p0), top, (p1 - p0) / steps + 0.3, low - top, fill, 0.16);
      }
    }
  };
  const whisker = (pen, x, y0, y1, ink) => { pen.line([[x, y0], [x, y1]], ink, 1.4); [y0, y1].forEach((y) => pen.line([[x - 4, y], [x + 4, y]], ink, 1.4)); };

  // ---- implied timescales against the lag
  const lines = Array.from({ length: Math.max(0, ...lags.map((l) => l.timescales.length)) }, (_, k) => lags.filter((l) => l.timescales[k] && l.timescales[k][0] > 0).map((l) => [l.lag, ...l.timescales[k]])).filter((line) => line.length);
  if (lags.length > 1 && lines.length) {
    const advice = D.summary.hints.find((h) => /\blag \d/.test(h) && /timescale/.test(h));
    const body = card('implied', 'Timescales against the lag', 'The same data counted at longer lags. The timescale of a process is right where its line is level; bands are 90 % intervals. In the grey area a timescale is shorter than the lag and cannot be measured.' + (advice ? ' Here: ' + advice + '.' : ''), first, 'Lag');
    figure(body, {
      name: 'implied-timescales', height: 300,
      draw: (pen, w, h) => {
        const b = { x0: 70, x1: w - 14, y0: 14, y1: h - 44 }, all = lines.flat().flatMap(([lag, ...t]) => [lag, ...t]).filter((t) => t > 0 && Number.isFinite(t));
        const ends = [lags[0].lag, lags[lags.length - 1].lag], sx = scale(ends[0], ends[1], b.x0, b.x1, true), lo = Math.min(...all) / 1.3, hi = Math.max(...all) * 1.2, sy = scale(lo, hi, b.y1, b.y0, true);
        const inside = (y) => Math.min(b.y1, Math.max(b.y0, y)), held = (t) => (t > 0 && Number.isFinite(t) ? t : hi);
        band(pen, lags.map((l) => [l.lag, lo, Math.max(lo, l.lag)]), sx, (t) => inside(sy(t)), css('--muted'));
        const ticks = lags.map((l) => l.lag); sx.ticks = () => ticks;
        axes(pen, b, sx, sy, 'lag, ' + frames, 'timescale, ' + frames);
        lines.forEach((line, k) => {
          band(pen, line.map(([lag, , low, high]) => [lag, low > 0 ? low : lo, held(high)]), sx, (t) => inside(sy(t)), colour(k));
          pen.line(line.map(([lag, t]) => [sx(lag), sy(t)]), colour(k), 2);
          line.forEach(([lag, t]) => pen.circle(sx(lag), sy(t), 3.2, colour(k)));
        });
        const at = sx(story.lag); pen.line([[at, b.y0], [at, b.y1]], css('--ink'), 1, [3, 3]); pen.text('this fit', at + 4, b.y0 + 10, { size: 11, fill: css('--muted') });
      },
      rows: () => [['lag', 'process', 'timescale', 'lower', 'upper']].concat(lines.flatMap((line, k) => line.map(([lag, t, low, high]) => [lag, k + 1, t, low ?? '', high ?? 'inf']))),
      words: () => `Implied timescales at lags ${lags.map((l) => l.lag).join(', ')}; the slowest: ${lines[0].map((p) => fixed(p[1], 3)).join(', ')} ${frames}`,
    });
  }

  // ---- Chapman-Kolmogorov
  const checked = lags.filter((l) => l.stays.length === s && l.predicted.length === s);
  if (checked.length > 1) {
    const told = checked.flatMap((l) => l.stays.map((e, j) => [...e, l.predicted[j]])).filter(([, low, high]) => low != null && high != null), all = told.length, off = told.filter(([, low, high, p]) => p < low || p > high).length;
    const body = card('check', 'Chapman-Kolmogorov check', `The probability of being in a meta-state again: lines are what this chain predicts, points are what the data give when they are counted at that lag, with 90 % intervals. ${all - off} of ${all} intervals contain the line.` + (s > 8 ? ' Choose a meta-state to see only this one.' : ''), first, 'Check');
    figure(body, {
      name: 'chapman-kolmogorov', height: 300,
      draw: (pen, w, h) => {
        const b = { x0: 70, x1: w - 14, y0: 14, y1: h - 44 }, sx = scale(checked[0].lag, checked[checked.length - 1].lag, b.x0 + 8, b.x1 - 8, true), sy = scale(0, 1, b.y1, b.y0);
        const ticks = checked.map((l) => l.lag); sx.ticks = () => ticks;
        axes(pen, b, sx, sy, 'time, ' + frames, 'probability of being there again');
        for (let j = 0; j < s; j++) {
          if (now.metastate != null && now.metastate !== j) continue;
          pen.line(checked.map((l) => [sx(l.lag), sy(l.predicted[j])]), colour(j), 1.8);
          checked.forEach((l) => { const [p, low, high] = l.stays[j], x = sx(l.lag) + (s > 1 ? 7 * (j / (s - 1) - 0.5) : 0); pen.circle(x, sy(p), 3, colour(j)); if (low != null && high != null) whisker(pen, x, sy(high), sy(low), colour(j)); });
        }
      },
      rows: () => [['time', 'metastate', 'predicted', 'estimated', 'lower', 'upper']].concat(checked.flatMap((l) => l.stays.map(([p, low, high], j) => [l.lag, j + 1, l.predicted[j], p, low ?? '', high ?? '']))),
      words: () => `Chapman-Kolmogorov check: ${all - off} of ${all} intervals contain what the chain predicts`,
    });
  }

  // ---- reactive flux
  const solve = (A, b) => {                                  // Gauss with pivots
    const n = b.length, M = A.map((row, i) => [...row, b[i]]);
    for (let c = 0; c < n; c++) {
      let p = c; for (let r = c + 1; r < n; r++) if (Math.abs(M[r][c]) > Math.abs(M[p][c])) p = r;
      [M[c], M[p]] = [M[p], M[c]];
      if (Math.abs(M[c][c]) < 1e-300) return null;
      for (let r = c + 1; r < n; r++) { const f = M[r][c] / M[c][c]; if (f) for (let k = c; k <= n; k++) M[r][k] -= f * M[c][k]; }
    }
    const x = Array(n).fill(0);
    for (let r = n - 1; r >= 0; r--) x[r] = (M[r][n] - M[r].slice(r + 1, n).reduce((sum, m, k) => sum + m * x[r + 1 + k], 0)) / M[r][r];
    return x;
  };
  const met = (P, a, b) => {                                 // probability of b before a
    const rest = P.map((_, j) => j).filter((j) => j !== a && j !== b);
    const x = solve(rest.map((i) => rest.map((j) => +(i === j) - P[i][j])), rest.map((i) => P[i][b]));
    const q = P.map((_, j) => +(j === b)); if (x) rest.forEach((i, k) => { q[i] = Math.min(1, Math.max(0, x[k])); });
    return q;
  };
  const tpt = (a, b) => {
    const forward = met(K, a, b), back = K.map((_, i) => K.map((_, j) => (mass[i] > 0 ? (mass[j] * K[j][i]) / mass[i] : 0))), backward = met(back, b, a);
    const gross = K.map((row, i) => row.map((p, j) => (i === j ? 0 : mass[i] * backward[i] * p * forward[j])));
    const net = gross.map((row, i) => row.map((f, j) => Math.max(0, f - gross[j][i]))), total = gross[a].reduce((x, y) => x + y, 0), way = mass.reduce((x, m, j) => x + m * backward[j], 0);
    return { forward, net, total: total / story.lag, rate: total / way / story.lag };
  };
  if (s > 1 && story.pair) {
    const body = card('flux', 'From one meta-state to another', 'Transition path theory: which ways the chain takes from one meta-state to the other. The position of a meta-state is its committor, the probability of reaching the end before the start; arrows are the net flux.', second, 'Flux');
    const choice = { from: story.pair[0], to: story.pair[1] };
    const select = (key, name) => { const box = el('select', { 'aria-label': name }, ...K.map((_, j) => el('option', { value: String(j), text: 'meta-state ' + (j + 1) }))); box.value = String(choice[key]); box.addEventListener('change', () => { const other = key === 'from' ? 'to' : 'from'; choice[key] = Number(box.value); if (choice[key] === choice[other]) { choice[other] = (choice[key] + 1) % s; } set({}); }); listeners.push(() => { box.value = String(choice[key]); }); return el('label', {}, name, box); };
    const tell = el('output', {});
    body.append(el('div', { class: 'controls' }, select('from', 'from'), select('to', 'to'), tell));
    let found = tpt(choice.from, choice.to), key = '';
    const fresh = () => { const k = choice.from + '>' + choice.to; if (k !== key) { key = k; found = tpt(choice.from, choice.to); } const direct = story.passage[choice.from] && story.passage[choice.from][choice.to]; tell.textContent = (found.total > 0 ? `one passage in ${number(1 / found.total)} frames` : 'no passage') + (direct && direct[0] != null ? `; mean passage time ${number(direct[0])}` + (direct[1] != null ? ` (${number(direct[1])} to ${direct[2] == null ? '∞' : number(direct[2])})` : '') : ''); };
    listeners.unshift(fresh);
    const lanes = (h) => { const order = found.forward.map((q, j) => [q, j]).sort((x, y) => x[0] - y[0] || x[1] - y[1]), y = Array(s), room = h - 100; order.forEach(([, j], k) => { const t = (0.18 + 0.618 * k) % 1; y[j] = 46 + room * (j === choice.from || j === choice.to ? 0.5 : t < 0.5 ? 0.7 * t : 0.3 + 0.7 * t); }); return y; };
    const spots = (w, h) => { const y = lanes(h); return found.forward.map((q, j) => [54 + q * (w - 108), y[j]]); };
    const radius = (j) => 8 + 20 * Math.sqrt(mass[j]);
    figure(body, {
      name: 'flux', height: 320,
      draw: (pen, w, h) => {
        const at = spots(w, h), most = Math.max(...found.net.flat()) || 1, ink = css('--muted');
        pen.line([[54, h - 34], [w - 54, h - 34]], css('--line')); [0, 0.5, 1].forEach((q) => pen.text(String(q), 54 + q * (w - 108), h - 18, { anchor: 'middle', size: 11, fill: ink })); pen.text('committor', w / 2, h - 4, { anchor: 'middle', size: 12, fill: ink });
        for (let i = 0; i < s; i++) for (let j = 0; j < s; j++) {
          const f = found.net[i][j] / most; if (!(f > 0.01)) continue;
          const [x0, y0] = at[i], [x1, y1] = at[j], length = Math.hypot(x1 - x0, y1 - y0) || 1, [dx, dy] = [(x1 - x0) / length, (y1 - y0) / length], a = [x0 + dx * radius(i), y0 + dy * radius(i)], z = [x1 - dx * (radius(j) + 3), y1 - dy * (radius(j) + 3)], wide = 0.8 + 6 * f, tip = 6 + 0.9 * wide;
          pen.curve(a[0], a[1], (a[0] + z[0]) / 2, (a[1] + z[1]) / 2, z[0] - dx * tip * 0.5, z[1] - dy * tip * 0.5, colour(i), wide, 0.75);
          [1, -1].forEach((side) => pen.line([z, [z[0] - dx * tip - dy * tip * 0.6 * side, z[1] - dy * tip + dx * tip * 0.6 * side]], colour(i), Math.max(1.5, wide * 0.6)));
        }
        at.forEach(([x, y], j) => { pen.circle(x, y, radius(j), colour(j), now.metastate === j || j === choice.from || j === choice.to ? css('--ink') : css('--card'), now.metastate === j ? 3 : 1.5); pen.text(String(j + 1), x, y + 4, { anchor: 'middle', size: 12, weight: 650, fill: '#ffffff' }); });
      },
      at: (x, y, w, h) => {
        const j = spots(w, h).findIndex(([a, b], k) => (a - x) ** 2 + (b - y) ** 2 < (radius(k) + 3) ** 2);
        if (j < 0) return null;
        const out = found.net[j].map((f, k) => [k, f]).filter((e) => e[1] > 0).sort((e, f) => f[1] - e[1]).slice(0, 4), sum = found.net[j].reduce((a, b) => a + b, 0) || 1;
        return { tip: [el('b', { text: 'meta-state ' + (j + 1) }), el('div', { text: 'committor ' + fixed(found.forward[j], 3) })].concat(bars(out.map(([k, f]) => ['to ' + (k + 1), f / sum, colour(k)]))), click: () => pick(j) };
      },
      rows: () => [['from', 'to', 'net_flux_a_frame']].concat(found.net.flatMap((row, i) => row.map((f, j) => [i + 1, j + 1, f / story.lag]).filter((r) => r[2] > 0))),
      words: () => `Net reactive flux from meta-state ${choice.from + 1} to ${choice.to + 1}; rate ${number(found.rate)} a frame`,
    });
  }

  // ---- passage times
  if (s > 1 && story.passage.length === s) {
    const times = story.passage.flat().map((e) => e && e[0]).filter((t) => t > 0), [lo, hi] = [Math.min(...times), Math.max(...times)];
    if (times.length) {
      const shade = (t) => (t > 0 ? Math.log(t / lo) / (Math.log(hi / lo) || 1) : 0);
      const body = card('passage', 'Passage times', 'Mean time in ' + frames + ' from the states of a meta-state (row) to those of another (column), by the states\' own chain, looked at once in every lag; the diagonal is the time to the next visit. Brighter means longer, on a logarithmic scale; ∞ means never.', second, 'Passage times');
      const cellAt = (w, h) => ({ side: Math.min((w - 34) / s, (h - 30) / s), x0: 30, y0: 24 }), short = (t) => (t == null ? '' : t >= 1e5 ? Number(t).toExponential(1).replace('e+', 'e') : fixed(t, 3));
      figure(body, {
        name: 'passage-times', height: (w) => Math.min(430, Math.max(300, w)),
        draw: (pen, w, h) => {
          const { side, x0, y0 } = cellAt(w, h);
          story.passage.forEach((row, i) => row.forEach((e, j) => {
            const t = e && e[0], dim = now.metastate == null || now.metastate === i || now.metastate === j ? 1 : 0.25;
            pen.rect(x0 + j * side, y0 + i * side, side - 0.7, side - 0.7, t == null ? css('--line') : ramp(shade(t)), dim);
            if (side > 40) pen.text(t == null ? '∞' : short(t), x0 + (j + 0.5) * side, y0 + (i + 0.5) * side + 4, { anchor: 'middle', size: 11, fill: t != null && shade(t) < 0.6 ? '#ffffff' : '#14181c' });
          }));
          const every = Math.ceil(16 / side);
          for (let j = 0; j < s; j += every) { pen.text(String(j + 1), x0 + (j + 0.5) * side, y0 - 6, { anchor: 'middle', size: 11, fill: css('--muted') }); pen.text(String(j + 1), x0 - 6, y0 + (j + 0.5) * side + 4, { anchor: 'end', size: 11, fill: css('--muted') }); }
        },
        at: (x, y, w, h) => { const { side, x0, y0 } = cellAt(w, h), j = Math.floor((x - x0) / side), i = Math.floor((y - y0) / side), e = story.passage[i] && story.passage[i][j]; return story.passage[i] && j >= 0 && j < s ? { tip: [el('b', { text: `${i + 1} → ${j + 1}` }), el('div', { text: e && e[0] != null ? `${number(e[0])} frames` + (e[1] != null ? `, 90 %: ${number(e[1])} to ${e[2] == null ? '∞' : number(e[2])}` : '') : 'never' })], click: () => pick(i) } : null; },
        rows: () => [['from', 'to', 'frames', 'lower', 'upper']].concat(story.passage.flatMap((row, i) => row.map((e, j) => [i + 1, j + 1, (e && e[0]) ?? 'inf', (e && e[1]) ?? '', (e && e[2]) ?? '']))),
        words: () => `Mean passage times between ${s} meta-states, ${number(lo)} to ${number(hi)} frames`,
      });
    }
  }

  // ---- fates
  if (story.fates.length) {
    const F = story.fates, body = card('fates', 'Where meta-states end', 'Some meta-states are left for ever. Each bar shows the probabilities of ending in the groups that are never left again.', figures, 'Fates');
    figure(body, {
      name: 'fates', height: Math.max(80, 30 + 22 * s),
      draw: (pen, w) => {
        for (let j = 0; j < s; j++) {
          let x = 60; pen.text(String(j + 1), 46, 22 + 22 * j, { anchor: 'end', size: 12, fill: css('--muted') });
          F.forEach((f) => { const wide = (w - 80) * f.probability[j], tint = colour(f.members[0] - 1); pen.rect(x, 9 + 22 * j, wide, 17, tint, now.metastate == null || now.metastate === j ? 1 : 0.3); if (wide > 60) pen.text('{' + f.members.join(', ') + '}', x + wide / 2, 22 + 22 * j, { anchor: 'middle', size: 11, fill: '#ffffff' }); x += wide; });
        }
      },
      at: (x, y) => { const j = Math.floor((y - 9) / 22); return j >= 0 && j < s ? { tip: [el('b', { text: 'meta-state ' + (j + 1) })].concat(bars(F.map((f) => ['{' + f.members.join(', ') + '}', f.probability[j], colour(f.members[0] - 1)]))), click: () => pick(j) } : null; },
      rows: () => [['metastate', 'class', 'probability']].concat(F.flatMap((f) => f.probability.map((p, j) => [j + 1, f.members.join(' '), p]))),
      words: () => `Where ${s} meta-states end: ${F.length} groups that are never left`,
    });
  }
};
