import assert from 'node:assert/strict';
import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, it } from 'node:test';
import { gunzipSync } from 'node:zlib';
import { type BundledConsole, bundleConsole } from '../../build/console.ts';
import type { ConsoleManifest } from '../../src/apiserver/console/manifest.ts';

describe('bundle of the console', () => {
  let directory: string;
  let bundled: BundledConsole;
  let manifest: ConsoleManifest;
  let contents: Buffer;

  before(async () => {
    directory = await mkdtemp(join(tmpdir(), 'console-'));
    bundled = await bundleConsole(directory);
    manifest = JSON.parse(await readFile(bundled.manifest, 'utf8')) as ConsoleManifest;
    contents = await readFile(bundled.contents);
  });
  after(() => rm(directory, { recursive: true, force: true }));

  const textOf = (name: string): string => {
    const file = manifest.files.find((each) => each.name === name);
    assert.ok(file, name);
    return gunzipSync(contents.subarray(file.offset, file.offset + file.length)).toString('utf8');
  };

  it('the console loads at most 200 KiB first, and its bundle has at most 1.5 MiB', () => {
    assert.ok(bundled.firstLoad > 10_000, `${bundled.firstLoad}`);
    assert.ok(bundled.firstLoad <= 200 * 1024, `${bundled.firstLoad}`);
    assert.ok(bundled.all >= bundled.firstLoad && bundled.all <= 1536 * 1024, `${bundled.all}`);
  });

  it('the bundle of the console refers only to its own files, without inline code', () => {
    const page = textOf('index.html');
    const references = [...page.matchAll(/(?:href|src)="([^"]+)"/g)].map(([, path = '']) => path);
    assert.equal(references.length, 3);
    for (const path of references) {
      assert.match(path, /^\/console\/assets\/[\w-]+\.(?:js|css|svg)$/);
      assert.notEqual(textOf(path.slice('/console/'.length)), '');
    }
    assert.doesNotMatch(page, /<style|<script(?![^>]* src=)|\son\w+=|\sstyle=/);
  });

  it('loads the terminal and the editor only when they are used', () => {
    const [, script = ''] = /src="\/console\/(assets\/index-\w+\.js)"/.exec(textOf('index.html')) ?? [];
    assert.doesNotMatch(textOf(script), /xterm|cm-scroller/);
  });
});
