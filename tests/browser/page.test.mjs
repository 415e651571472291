// The page from disk in a real browser. Needs Chromium (Debian's package) and the `metastate` command:
// METASTATE=path/to/metastate npm test
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, afterEach, before, describe, test } from 'node:test';
import { pathToFileURL } from 'node:url';
import { chromium } from 'playwright-core';

const metastate = process.env.METASTATE ?? 'metastate';
const folder = mkdtempSync(join(tmpdir(), 'metastate-page-'));
const run = (...args) => execFileSync(metastate, ['--quiet', ...args], { cwd: folder, encoding: 'utf8' });

const HOSTILE = [
  '<script>window.hit = 1</script>', '</script><script>window.hit = 1</script>', '<img src=x onerror="window.hit = 1">', '"><svg onload=window.hit=1>',
  "'><iframe src=javascript:window.hit=1>", '<!--', '-->', '<![CDATA[', ']]>', '&lt;script&gt;', '&#x3c;script&#x3e;', '</title><script>window.hit=1</script>',
  '</style><script>window.hit=1</script>', '{{SCRIPT}}', '{{DATA}}', '${window.hit = 1}', '`${window.hit = 1}`', '\\u003cscript\\u003e', '\\', '\\"', "\\'", '"', "'", 'a"b\'c',
  'javascript:window.hit=1', '<a href="javascript:window.hit=1">x</a>', '<style>*{display:none}</style>', '<base href="http://example.invalid/">', '<meta http-equiv=refresh content=0>',
  '<link rel=stylesheet href=//example.invalid/x.css>', '\u202Eright to left', '\u200F\u202B mixed \u202C', '\u2028line', '\u2029paragraph', '\uFEFFmark', '= 1 + 1', '<b>bold</b>',
  'emoji 🗺️', 'x'.repeat(2000), '../../etc/passwd', '<object data=x>', '__proto__',
];

// A chain with two groups of states under the given names.
const trips = (names) => {
  let seed = 7;
  const random = () => (seed = (seed * 48271) % 2147483647) / 2147483647;
  const quote = (t) => '"' + t.replaceAll('"', '""') + '"';
  const half = Math.ceil(names.length / 2);
  const rows = ['from,to'];
  for (let n = 0; n < 6000; n++) {
    const i = Math.floor(random() * names.length), stay = random() < 0.9;
    const group = (i < half) === stay ? 0 : 1, size = group ? names.length - half : half;
    rows.push(quote(names[i]) + ',' + quote(names[group * half + Math.floor(random() * size)]));
  }
  return rows.join('\n') + '\n';
};

let browser;
const open = async (page, options = {}) => {
  const context = await browser.newContext({ viewport: { width: 1200, height: 900 }, acceptDownloads: true, ...options });
  const tab = await context.newPage();
  const seen = { errors: [], requests: [], dialogs: 0 };
  tab.on('console', (m) => ['error', 'warning'].includes(m.type()) && seen.errors.push(m.text()));
  tab.on('pageerror', (e) => seen.errors.push(String(e)));
  tab.on('request', (r) => seen.requests.push(r.url()));
  tab.on('dialog', (d) => { seen.dialogs++; d.dismiss(); });
  const start = Date.now();
  await tab.goto(pathToFileURL(join(folder, page, 'report.html')).href);
  await tab.waitForSelector('html[data-ready="yes"]');
  return { tab, seen, milliseconds: Date.now() - start };
};
const quiet = ({ seen }, page) => {
  assert.deepEqual(seen.errors, []);
  const own = pathToFileURL(join(folder, page, 'report.html')).href;
  assert.deepEqual(seen.requests.filter((url) => url !== own && !url.startsWith('blob:')), []);
  assert.equal(seen.dialogs, 0);
};
const picture = (tab, id) => tab.locator(`#${id} canvas`).evaluate((c) => c.toDataURL());

before(async () => {
  run('demo', '--out', 'city');
  writeFileSync(join(folder, 'hostile.csv'), trips(HOSTILE));
  run('fit', 'hostile.csv', '--from', 'from', '--to', 'to', '--lambda-ratio', '0.3', '--out', 'hostile');
  run('simulate', 'city', '--trips', '40000', '--out', 'trips.csv');
  const city = ['trips.csv', '--from-lon', 'from_lon', '--from-lat', 'from_lat', '--to-lon', 'to_lon', '--to-lat', 'to_lat', '--cell', '0.02'];
  run('path', ...city, '--points', '5', '--floor', '0.1', '--max-rank', '10', '--folds', '2', '--refit', 'likelihood', '--bootstrap', '5', '--out', 'path');
  run('fit', ...city, '--lambda-ratio', '0.25', '--clusters', '3', '--out', 'three');
  run('compare', ...city, '--rank', '4', '--folds', '2', '--methods', 'svd-partition,penalised', '--out', 'rivals');
  browser = await chromium.launch({
    executablePath: process.env.CHROMIUM ?? '/usr/bin/chromium',
    args: ['--no-sandbox', '--disable-gpu', '--disable-quic', '--no-first-run', '--disable-background-networking', '--disable-component-update', '--disable-sync'],
  });
});
afterEach(async () => { for (const context of browser.contexts()) await context.close(); });
after(async () => {
  await browser?.close();
  rmSync(folder, { recursive: true, force: true });
});

describe('the page of the toy city', () => {
  test('opens quickly, in silence, without a network', async () => {
    const page = await open('city');
    quiet(page, 'city');
    assert.ok(statSync(join(folder, 'city', 'report.html')).size < 6e6);
    assert.match(await page.tab.title(), /8 zones behind 427 cells/);
    console.log(`ready after ${page.milliseconds} ms`);
  });

  test('a click on a meta-state lights it up everywhere, Escape puts it out', async () => {
    const page = await open('city');
    const { tab } = page;
    const figures = ['map', 'latent', 'latent-heat', 'matrices'];
    const before = await Promise.all(figures.map((id) => picture(tab, id)));
    await tab.click('#chips button[data-metastate="2"]');
    assert.equal(await tab.getAttribute('#chips button[data-metastate="2"]', 'aria-pressed'), 'true');
    assert.match(await tab.locator('#metastates tbody tr').nth(2).getAttribute('class'), /on/);
    const lit = await Promise.all(figures.map((id) => picture(tab, id)));
    figures.forEach((id, k) => assert.notEqual(lit[k], before[k], id));
    await tab.locator('#map canvas').focus();
    await tab.keyboard.press('Escape');
    const out = await Promise.all(figures.map((id) => picture(tab, id)));
    figures.forEach((id, k) => assert.equal(out[k], before[k], id));
    quiet(page, 'city');
  });

  test('the keyboard does the same in the table', async () => {
    const { tab } = await open('city');
    await tab.locator('#metastates tbody tr').nth(1).focus();
    await tab.keyboard.press('Enter');
    assert.equal(await tab.getAttribute('#chips button[data-metastate="1"]', 'aria-pressed'), 'true');
  });

  test('pointing at a cell tells its label and memberships', async () => {
    const { tab } = await open('city');
    // What lies below the window has no pointer over it.
    await tab.locator('#map canvas').scrollIntoViewIfNeeded();
    const box = await tab.locator('#map canvas').boundingBox();
    await tab.mouse.move(box.x + 0.12 * box.width, box.y + 0.45 * box.height);
    await tab.waitForSelector('#tip:not([hidden])');
    const tip = await tab.textContent('#tip');
    assert.match(tip, /-?\d+\.\d+,-?\d+\.\d+/);
    assert.match(tip, /zone \d/);
    await tab.mouse.move(2, 2);
    assert.equal(await tab.locator('#tip').isHidden(), true);
  });

  test('soft and hard, beside and alone', async () => {
    const { tab } = await open('city');
    // Beside the rival's hard zones ours are hard at first.
    const soft = tab.locator('#map button', { hasText: 'Soft memberships' });
    assert.equal(await soft.getAttribute('aria-pressed'), 'false');
    const hard = await picture(tab, 'map');
    await soft.click();
    assert.notEqual(await picture(tab, 'map'), hard);
    await soft.click();
    assert.equal(await picture(tab, 'map'), hard);
    await tab.click('text=Beside SVD with k-means');
    assert.notEqual(await picture(tab, 'map'), hard);
  });

  test('a chosen cell and the slider drive the forecast', async () => {
    const { tab } = await open('city');
    const label = await tab.locator('#labels option').nth(100).getAttribute('value');
    await tab.fill('#map input[type=search]', label);
    await tab.keyboard.press('Enter');
    const one = [await picture(tab, 'forecast'), await picture(tab, 'map')];
    await tab.locator('#forecast input[type=range]').fill('5');
    assert.match(await tab.textContent('#forecast output'), new RegExp('^5 from ' + label.replace('.', '\\.')));
    assert.notEqual(await picture(tab, 'forecast'), one[0]);
    assert.notEqual(await picture(tab, 'map'), one[1]);
  });

  test('every figure downloads as SVG, PNG and CSV', async () => {
    for (const id of ['map', 'latent', 'latent-heat', 'timescales', 'forecast', 'matrices', 'convergence']) {
      // A fresh page for each: the browser allows ten downloads in a row.
      const page = await open('city');
      const { tab } = page;
      for (const [kind, begins] of [['SVG', '<svg xmlns'], ['PNG', '\x89PNG'], ['CSV', '']]) {
        const [download] = await Promise.all([tab.waitForEvent('download'), tab.click(`#${id} .tools button:text("${kind}")`)]);
        const bytes = readFileSync(await download.path(), kind === 'PNG' ? 'latin1' : 'utf8');
        assert.ok(bytes.startsWith(begins) && bytes.length > 40, `${id} ${kind}: ${bytes.slice(0, 60)}`);
        assert.ok(download.suggestedFilename().endsWith('.' + kind.toLowerCase()));
        if (kind === 'SVG') {
          const fault = await tab.evaluate((t) => new DOMParser().parseFromString(t, 'image/svg+xml').querySelector('parsererror')?.textContent, bytes);
          assert.equal(fault, undefined);
          assert.match(bytes, /<title>.{10,}<\/title>/, id); // in words, for those who do not see it
        }
      }
      quiet(page, 'city');
    }
  });

  test('dark mode follows the system and the button', async () => {
    const paper = (tab) => tab.evaluate(() => getComputedStyle(document.body).backgroundColor);
    const light = await open('city', { colorScheme: 'light' });
    const dark = await open('city', { colorScheme: 'dark' });
    assert.notEqual(await paper(light.tab), await paper(dark.tab));
    await light.tab.click('#theme');
    assert.equal(await paper(light.tab), await paper(dark.tab));
  });

  test('every figure has words for those who cannot see it', async () => {
    const { tab } = await open('city');
    const words = await tab.locator('canvas').evaluateAll((all) => all.map((c) => c.getAttribute('aria-label')));
    assert.ok(words.length >= 7 && words.every((w) => w && w.length > 10), JSON.stringify(words));
  });

  test('report makes the same page from the folder alone', async () => {
    const path = join(folder, 'city', 'report.html');
    const first = readFileSync(path, 'utf8');
    run('report', 'city');
    assert.equal(readFileSync(path, 'utf8'), first);
  });
});

describe('the page of a path', () => {
  test('the lambda slider moves rank, score, gap and map', async () => {
    const page = await open('path');
    const { tab } = page;
    const slider = tab.locator('#path input[type=range]'), told = () => tab.textContent('#path output');
    const [at, most] = [Number(await slider.inputValue()), Number(await slider.getAttribute('max'))];
    assert.ok(most >= 2, `${most + 1} points`);
    const before = [await told(), await picture(tab, 'path'), await picture(tab, 'map')];
    await slider.fill(String(at === 0 ? most : 0));
    const after = [await told(), await picture(tab, 'path'), await picture(tab, 'map')];
    before.forEach((was, k) => assert.notEqual(after[k], was, ['words', 'curve', 'map'][k]));
    assert.match(after[0], /rank \d+/);
    await slider.fill(String(at));
    assert.deepEqual([await told(), await picture(tab, 'path'), await picture(tab, 'map')], before);
    quiet(page, 'path');
  });

  test('the refit and the whiskers of the timescales are told', async () => {
    const { tab } = await open('path');
    assert.match(await tab.textContent('#refit'), /refit by likelihood/);
    assert.match(await tab.textContent('#timescales .note'), /whiskers/);
  });
});

describe('the page of three zones', () => {
  test('zones and meta-states are told apart in words and numbers', async () => {
    const page = await open('three');
    const { tab } = page;
    const rank = Number((await tab.title()).match(/^(\d+) meta-states behind \d+ cells, in 3 zones$/)[1]);
    assert.ok(rank > 3, `${rank} meta-states`);
    assert.equal(await tab.locator('#chips button').count(), rank);
    assert.match(await tab.getAttribute('#map canvas', 'aria-label'), /cells in 3 zones/);
    // What lies below the window has no pointer over it.
    await tab.locator('#map canvas').scrollIntoViewIfNeeded();
    const box = await tab.locator('#map canvas').boundingBox();
    await tab.mouse.move(box.x + 0.12 * box.width, box.y + 0.45 * box.height);
    await tab.waitForSelector('#tip:not([hidden])');
    assert.match(await tab.textContent('#tip'), /zone [123].*meta-state \d/);
    const [download] = await Promise.all([tab.waitForEvent('download'), tab.click('#map .tools button:text("CSV")')]);
    const rows = readFileSync(await download.path(), 'utf8').trim().split('\n').map((line) => line.match(/("[^"]*"|[^,]*)(,|$)/g).map((f) => f.replace(/,$/, '')));
    assert.deepEqual(rows[0].slice(4, 6), ['metastate', 'zone']);
    const highest = (k) => Math.max(...rows.slice(1).map((r) => Number(r[k])));
    // Some meta-states are the largest membership of no state.
    assert.ok(highest(4) > 3 && highest(4) <= rank && highest(5) === 3, `${highest(4)}, ${highest(5)}`);
    // The numbers of meta-states are none of zones: choosing one changes the map, and frames no zone in the matrices.
    const before = [await picture(tab, 'map'), await picture(tab, 'matrices')];
    await tab.click('#chips button[data-metastate="1"]');
    assert.notEqual(await picture(tab, 'map'), before[0]);
    assert.equal(await picture(tab, 'matrices'), before[1]);
    quiet(page, 'three');
  });
});

describe('the page of compare', () => {
  test('shows the table and the maps without any script', async () => {
    const context = await browser.newContext();
    const tab = await context.newPage();
    const requests = [];
    tab.on('request', (r) => requests.push(r.url()));
    await tab.goto(pathToFileURL(join(folder, 'rivals', 'report.html')).href);
    assert.equal(await tab.locator('script').count(), 0);
    assert.equal(await tab.locator('table tr').count(), 3);
    assert.ok(await tab.locator('img').evaluateAll((all) => all.length === 3 && all.every((i) => i.naturalWidth > 0)));
    assert.equal(requests.filter((url) => !url.startsWith('data:')).length, 1);
  });

  test('report makes it again, and PNG on demand', () => {
    const path = join(folder, 'rivals', 'report.html');
    const first = readFileSync(path, 'utf8');
    run('report', 'rivals', '--png');
    assert.equal(readFileSync(path, 'utf8'), first);
    assert.ok(readFileSync(join(folder, 'rivals', 'compare.png'), 'latin1').startsWith('\x89PNG'));
    run('report', 'path', '--png');
    assert.ok(statSync(join(folder, 'path', 'plots', 'timescales.png')).size > 5000);
  });
});

describe('labels from strangers', () => {
  test('forty hostile labels run nothing and come back as they are', async () => {
    assert.ok(HOSTILE.length >= 40);
    const page = await open('hostile');
    const { tab } = page;
    for (const zone of await tab.locator('#chips button').all()) await zone.click();
    const box = await tab.locator('#map canvas').boundingBox();
    for (let k = 0; k < HOSTILE.length; k++) await tab.mouse.move(box.x + ((k + 0.5) * box.width) / HOSTILE.length, box.y + box.height / 2);
    assert.equal(await tab.evaluate(() => window.hit), undefined);
    const labels = await tab.evaluate(() => JSON.parse(document.getElementById('data').textContent).labels);
    assert.deepEqual([...labels].sort(), [...HOSTILE].sort());
    assert.equal(await tab.locator('img, iframe, object, base, link, svg').count(), 0);
    quiet(page, 'hostile');
  });
});
