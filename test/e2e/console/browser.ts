/**
 * A browser in the network namespace of an appliance: Debian's chromium, driven by playwright-core. It records requests
 * to other origins, violations of the content security policy and uncaught errors.
 */
import assert from 'node:assert/strict';
import { existsSync } from 'node:fs';
import { chmod, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { createRequire } from 'node:module';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type Browser, type BrowserContext, type BrowserContextOptions, chromium, type Page } from 'playwright-core';
import { type Appliance, projectRoot } from '../harness.ts';

const CHROMIUM = process.env['HYPEREDGE_CHROMIUM'] ?? '/usr/bin/chromium';
/** Directory for the pictures of the documents; nothing is written without it. */
const PICTURES = process.env['HYPEREDGE_PICTURES'];
const MAX_PICTURE_BYTES = 150_000;
/** A long time limit, because other suites run beside this one. */
const PATIENCE_MS = 90_000;
export const SERVER = 'https://127.0.0.1:8443';
export const CONSOLE = `${SERVER}/console/`;

/** Reason to skip tests with a browser; undefined if there is one. */
export const withoutBrowser = (): string | undefined =>
  existsSync(CHROMIUM) ? undefined : `${CHROMIUM} is not installed (apt-get install chromium)`;

export interface Tab {
  readonly context: BrowserContext;
  readonly page: Page;
  /** Actions of the console that are defects: requests to others, violations, errors. */
  readonly faults: readonly string[];
  /** Values of the Authorization header that the tab has sent. */
  readonly tokens: ReadonlySet<string>;
}

export class TestBrowser {
  readonly #browser: Browser;
  readonly #directory: string;

  private constructor(browser: Browser, directory: string) {
    this.#browser = browser;
    this.#directory = directory;
  }

  static async start(host: Pick<Appliance, 'holderPid'>, flags: readonly string[] = []): Promise<TestBrowser> {
    const directory = await mkdtemp(join(tmpdir(), 'he-browser-'));
    const program = join(directory, 'chromium');
    await writeFile(program, `#!/bin/sh\nexec nsenter -t ${host.holderPid} -n ${CHROMIUM} "$@"\n`);
    await chmod(program, 0o755);
    const browser = await chromium.launch({
      executablePath: program,
      args: ['--no-sandbox', '--disable-gpu', '--disable-dev-shm-usage', '--disable-background-networking', ...flags],
      env: { ...process.env, HOME: directory },
      timeout: 120_000,
    });
    return new TestBrowser(browser, directory);
  }

  /** Opens a tab with cookies and storage of its own. */
  async newTab(options: BrowserContextOptions = {}): Promise<Tab> {
    const context = await this.#browser.newContext({ ignoreHTTPSErrors: true, ...options });
    context.setDefaultTimeout(PATIENCE_MS);
    const page = await context.newPage();
    const faults: string[] = [];
    const tokens = new Set<string>();
    page.on('console', (message) => {
      if (/content security policy|trusted ?types?/i.test(message.text())) faults.push(message.text());
    });
    page.on('pageerror', (error) => faults.push(error.stack ?? String(error)));
    const origins = new Set([SERVER]);
    context.on('request', (request) => {
      const url = new URL(request.url());
      if (request.isNavigationRequest()) origins.add(url.origin);
      else if (!origins.has(url.origin) && !/^(?:data|blob):/.test(url.protocol)) faults.push(`request to ${url.href}`);
      const { authorization } = request.headers();
      if (authorization !== undefined) tokens.add(authorization.replace(/^Bearer /, ''));
    });
    return { context, page, faults, tokens };
  }

  async stop(): Promise<void> {
    await this.#browser.close();
    await rm(this.#directory, { recursive: true, force: true });
  }
}

/** Logs in with a password at the page of the OAuth server. */
export async function logIn({ page }: Tab, user: string, password: string, address = CONSOLE): Promise<void> {
  await page.goto(address);
  await page.waitForURL(/\/login\?/);
  await page.fill('input[name=username]', user);
  await page.fill('input[name=password]', password);
  await page.click('button[type=submit]');
  await page.waitForSelector('.frame h1');
}

/** Violations of accessibility rules in the page, one a line. */
export async function accessibilityFaults(page: Page): Promise<string[]> {
  const source = await readFile(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8');
  await page.evaluate(source);
  const result = (await page.evaluate('axe.run(document)')) as {
    readonly violations: readonly {
      id: string;
      help: string;
      nodes: readonly { html: string; failureSummary?: string }[];
    }[];
  };
  return result.violations.flatMap(({ id, nodes }) =>
    nodes.map(
      ({ html, failureSummary = '' }) => `${id}: ${html.slice(0, 160)} ${failureSummary.replaceAll('\n', ' ')}`,
    ),
  );
}

/** Writes a JPEG picture for the documents if the environment names their directory. */
export async function picture(page: Page, name: string): Promise<void> {
  if (PICTURES === undefined) return;
  const path = join(projectRoot, PICTURES, name);
  const bytes = await page.screenshot({ path, quality: 80 });
  assert.ok(bytes.length <= MAX_PICTURE_BYTES, `${path}: ${bytes.length} bytes, at most ${MAX_PICTURE_BYTES}`);
}
