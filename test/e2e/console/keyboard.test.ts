/**
 * The pages without a mouse and on a small screen, with all actions permitted, in a browser against a small API server in
 * this process.
 */
import assert from 'node:assert/strict';
import { rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, test } from 'node:test';
import type { Browser } from 'playwright-core';
import { ApiServer, launch, openPage, PATHS, skip } from './page-server.ts';

describe('pages by keyboard', { skip, timeout: 480_000 }, () => {
  const server = new ApiServer();
  const directory = join(tmpdir(), `he-keyboard-${process.pid}`);
  let browser: Browser;
  before(async () => {
    await server.start(directory);
    server.allows = true;
    browser = await launch();
  });
  after(async () => {
    await browser?.close();
    server.stop();
    await rm(directory, { recursive: true, force: true });
  });

  test('Enter submits forms on pages, and the focus can leave a terminal', async () => {
    const { page } = await openPage(browser, 1_200);
    const focusIsIn = (selector: string): Promise<void> =>
      page.locator(`${selector}:focus, ${selector} :focus`).first().waitFor({ state: 'attached' });
    try {
      await page.goto(`${server.url}/console/who-can`);
      await page.waitForSelector('.form button[aria-disabled=false]');
      await page.locator('.form input').first().focus();
      await page.keyboard.press('Enter');
      await page.waitForSelector('section[aria-label=Subjects]');

      await page.goto(`${server.url}/console/pods/n/p0`);
      await page.click('button:text-is("Terminal")');
      await page.locator('.terminal textarea').focus();
      await page.keyboard.press('Tab');
      await focusIsIn('.terminal');
      await page.keyboard.press('Control+]');
      await focusIsIn('p');
      await page.keyboard.press('Tab');
      await focusIsIn('footer');
    } finally {
      await page.close();
    }
  });

  test('a closed dialog returns the focus to the button that opened it', async () => {
    const { page } = await openPage(browser, 1_200);
    try {
      page.setDefaultTimeout(10_000);
      await page.goto(`${server.url}/console/rigs?view=rigclaims`);
      const opener = page.locator('button:text-is("Release claim")');
      await opener.and(page.locator('[aria-disabled=false]')).waitFor();
      await opener.focus();
      await page.keyboard.press('Enter');
      await page.locator('dialog[open] button:text-is("Cancel")').focus();
      await page.keyboard.press('Enter');
      await page.waitForSelector('dialog', { state: 'detached' });
      await opener.and(page.locator(':focus')).waitFor();
    } finally {
      await page.close();
    }
  });

  test('pages fit on a screen of 360 px', async () => {
    const { page } = await openPage(browser, 360);
    const wider: string[] = [];
    try {
      for (const path of PATHS) {
        await page.goto(`${server.url}/console${path}`);
        await page.waitForSelector('#view h1');
        await page.waitForTimeout(200);
        const excess = Number(await page.evaluate('document.documentElement.scrollWidth - innerWidth'));
        if (excess > 0) wider.push(`${path}: ${excess} px`);
      }
    } finally {
      await page.close();
    }
    assert.deepEqual(wider, []);
  });
});
