/** Text that a user has typed survives the end of the session, other views and changes by others. */
import assert from 'node:assert/strict';
import { rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, test } from 'node:test';
import type { Browser, Page } from 'playwright-core';
import { ApiServer, launch, openPage, skip } from './page-server.ts';

const TYPED = 'typed-before-the-end';

describe('unsaved text', { skip, timeout: 240_000 }, () => {
  const server = new ApiServer();
  const directory = join(tmpdir(), `he-editing-${process.pid}`);
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

  const openEditor = async (): Promise<Page> => {
    const { page } = await openPage(browser, 360);
    page.setDefaultTimeout(15_000);
    await page.goto(`${server.url}/console/resources/core/v1/pods/p0?ns=n`);
    await page.click('.cm-content');
    await page.keyboard.press('Control+End');
    await page.keyboard.type(`# ${TYPED}`);
    return page;
  };
  const editorText = (page: Page): Promise<string | null> => page.locator('.cm-content').textContent();

  test('stays in the editor when the session ends, and is used after a login in another tab', async () => {
    const page = await openEditor();
    try {
      server.hasSession = false;
      await page.click('button:text-is("Read again")');
      await page.waitForSelector('[role=alert]:has-text("Your session has ended")');
      assert.match((await editorText(page)) ?? '', new RegExp(TYPED));
      server.hasSession = true;
      const [other] = await Promise.all([
        page.context().waitForEvent('page'),
        page.click('a:text-is("Log in again in a new tab")'),
      ]);
      await other.waitForSelector('h1:text-is("Logged in")');
      await page.waitForSelector('[role=alert]:has-text("Your session has ended")', { state: 'detached' });
      assert.match((await editorText(page)) ?? '', new RegExp(TYPED));
    } finally {
      server.hasSession = true;
      await page.context().close();
    }
  });

  test('stays in the editor while the server for logins fails', async () => {
    const page = await openEditor();
    try {
      server.hasSession = false;
      server.authorizeStatus = 503;
      await page.click('button:text-is("Read again")');
      await page.waitForSelector('p.bad');
      assert.match((await editorText(page)) ?? '', new RegExp(TYPED));
    } finally {
      server.hasSession = true;
      server.authorizeStatus = undefined;
      await page.context().close();
    }
  });

  test('is kept when the user leaves the view, until it is discarded', async () => {
    const page = await openEditor();
    try {
      await page.click('button.menu');
      await page.click('nav a:text-is("Nodes")');
      await page.waitForSelector('h1:text-is("Nodes")');
      await page.goBack();
      await page.waitForSelector('text=These are your changes from before.');
      assert.match((await editorText(page)) ?? '', new RegExp(TYPED));
      await page.click('button:text-is("Discard my changes")');
      assert.doesNotMatch((await editorText(page)) ?? '', new RegExp(TYPED));
    } finally {
      await page.context().close();
    }
  });
});
