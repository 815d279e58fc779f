/** The web console in a browser: delivery, login, one-time links, logout, keyboard, accessibility. */
import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { Appliance, sleep } from '../harness.ts';
import {
  accessibilityFaults,
  CONSOLE,
  logIn,
  picture,
  SERVER,
  type Tab,
  TestBrowser,
  withoutBrowser,
} from './browser.ts';

const LINK_MS = 60_000;
const skip = withoutBrowser() ?? false;
if (skip !== false) console.log(`skipped: ${skip}`);

/** Elements that are wider than the window. */
const WIDE = `[...document.querySelectorAll('body *')]
  .filter(() => document.documentElement.scrollWidth > document.documentElement.clientWidth)
  .filter((each) => each.getBoundingClientRect().right > document.documentElement.clientWidth + 1)
  .map((each) => each.outerHTML.slice(0, 120))`;

describe('login to the console', { timeout: 560_000, skip }, () => {
  let host: Appliance;
  let browser: TestBrowser;
  let password = '';
  let early = { url: '', atMs: 0 };

  before(async () => {
    host = await Appliance.create();
    await host.start(180_000);
    early = { url: await newLink(), atMs: performance.now() };
    const created = await host.hyperedge(['kubeadmin', 'create', '--root', host.root]);
    assert.equal(created.code, 0, created.stderr);
    password = created.stdout.trim();
    browser = await TestBrowser.start(host);
  });
  after(async () => {
    await browser?.stop();
    await host?.stop();
  });

  const newLink = async (): Promise<string> => {
    const { code, stdout, stderr } = await host.hyperedge(['console', '--root', host.root]);
    assert.equal(code, 0, stderr);
    assert.match(stdout, /^https:\/\/\S+\/console\/#login=[\w-]{43}\n$/);
    return stdout.trim();
  };
  const withTab = async (body: (tab: Tab) => Promise<void>, options = {}): Promise<void> => {
    const tab = await browser.newTab(options);
    try {
      await body(tab);
      assert.deepEqual(tab.faults, []);
    } finally {
      await tab.context.close();
    }
  };
  const statusWith = async (token: string): Promise<string> => {
    const url = `${SERVER}/apis/user.openshift.io/v1/users/~`;
    const args = ['-sk', '-o', '/dev/null', '-w', '%{http_code}', '-H', `Authorization: Bearer ${token}`, url];
    return (await host.inside('curl', args)).stdout;
  };

  test('logs in with a password, keeps the token in memory, survives a reload, and logs out', async () => {
    await withTab(async (tab) => {
      const { page, context, tokens } = tab;
      await logIn(tab, 'kubeadmin', password);
      await page.waitForSelector('.user:text-is("kube:admin")');
      assert.equal(page.url(), CONSOLE);
      const [first = ''] = tokens;
      assert.match(first, /^sha256~/);
      const stored = await page.evaluate(
        'Promise.all([JSON.stringify(localStorage), JSON.stringify(sessionStorage), document.cookie, location.href, ' +
          'document.documentElement.outerHTML, JSON.stringify(history.state), indexedDB.databases().then(JSON.stringify)])',
      );
      const secret = first.slice('sha256~'.length);
      assert.ok(!JSON.stringify(stored).includes(secret));
      assert.ok(
        (await context.cookies()).every(({ value, httpOnly, secure }) => httpOnly && secure && !value.includes(secret)),
      );

      await page.reload();
      await page.waitForSelector('.frame h1');
      assert.equal(page.url(), CONSOLE);
      const second = [...tokens].at(-1) ?? '';
      assert.notEqual(second, first);

      await page.click('text=Log out');
      await page.waitForSelector('text=Logged out');
      assert.equal(await statusWith(second), '401');
      assert.equal(await statusWith(first), '401');
      await page.reload();
      await page.waitForURL(/\/login\?/);
    });
  });

  test('a one-time link logs in only once, and the secret is removed from the URL', async () => {
    const link = await newLink();
    await withTab(async ({ page }) => {
      await page.goto(link);
      await page.waitForSelector('.frame h1');
      assert.doesNotMatch(page.url(), /login|#/);
      await page.waitForSelector('.user:text-is("kube:admin")');
    });
    await withTab(async ({ page }) => {
      await page.goto(link);
      await page.waitForSelector('text=This link cannot be used');
      assert.doesNotMatch(page.url(), /#login/);
    });
  });

  test('headers of the console forbid inline code, frames and other origins', async () => {
    await withTab(async ({ page }) => {
      const answer = await page.goto(CONSOLE);
      const policy = (await answer?.headerValue('content-security-policy')) ?? '';
      for (const part of ["default-src 'none'", "script-src 'self'", "frame-ancestors 'none'"])
        assert.ok(policy.includes(part), policy);
      assert.doesNotMatch(policy, /unsafe/);
      assert.equal(await answer?.headerValue('x-content-type-options'), 'nosniff');
    });
    const inline = await browser.newTab();
    // The test logs in first: without a session, the page redirects to the login while the script runs.
    await logIn(inline, 'kubeadmin', password);
    // This violation is provoked to prove that violations are recorded.
    await inline.page.evaluate(
      "{ const s = document.createElement('style'); s.textContent = 'a{}'; document.head.append(s) }",
    );
    await inline.page.waitForTimeout(200);
    assert.match(inline.faults.join('\n'), /content security policy/i);
    await inline.context.close();
  });

  test('the console works with the keyboard, at 360 px, and without violations of accessibility rules', async () => {
    for (const colorScheme of ['light', 'dark'] as const)
      await withTab(
        async (tab) => {
          const { page } = tab;
          await logIn(tab, 'kubeadmin', password);
          const links = await page.$$eval('nav a', (found) => found.map((each) => each.getAttribute('href') ?? ''));
          assert.ok(links.length > 0);
          const faults: string[] = [];
          for (const href of links) {
            await page.click(`nav a[href="${href}"]`);
            await page.waitForSelector('#view h1');
            await page.waitForTimeout(500);
            faults.push(...(await accessibilityFaults(page)).map((each) => `${colorScheme} ${href}: ${each}`));
          }
          assert.deepEqual(faults, []);
          await page.click(`nav a[href="${links[0]}"]`);
          await page.waitForTimeout(2_000);
          await picture(page, `console-${colorScheme}.jpg`);
          await page.keyboard.press('/');
          await page.waitForSelector('dialog.palette[open]');
          assert.deepEqual(await accessibilityFaults(page), []);
          await page.keyboard.type('overview');
          await page.waitForSelector('[role=option][aria-selected=true] >> text=Overview');
          await page.keyboard.press('Enter');
          await page.waitForSelector('dialog.palette', { state: 'detached' });
          assert.equal(page.url(), CONSOLE);
          await page.setViewportSize({ width: 360, height: 640 });
          assert.deepEqual(await page.evaluate(WIDE), []);
          await page.click('button.menu');
          await page.waitForSelector('nav.open');
        },
        { colorScheme, viewport: { width: 1200, height: 750 } },
      );
  });

  test('refuses a one-time link after 60 s', async () => {
    await sleep(Math.max(0, early.atMs + LINK_MS + 1_000 - performance.now()));
    await withTab(async ({ page }) => {
      await page.goto(early.url);
      await page.waitForSelector('text=This link cannot be used');
    });
  });
});
