/** Runs the API server's tests on every other supported store. */
import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { join } from 'node:path';
import { it } from 'node:test';
import { promisify } from 'node:util';
import { OTHER_STORES, STORE_VARIABLE } from './stores.ts';

const run = promisify(execFile);
const FILES = ['rest/objects.test.ts', 'rest/two-servers.test.ts', 'rest/watch.test.ts'];

for (const store of OTHER_STORES) {
  it(`the API server on ${store}`, async () => {
    const files = FILES.map((file) => join(import.meta.dirname, file));
    // A nested test run would report to the outer one unless NODE_TEST_CONTEXT is removed.
    const { NODE_TEST_CONTEXT: _, ...environment } = process.env;
    const { stdout } = await run(process.execPath, ['--test', '--test-reporter=tap', ...files], {
      env: { ...environment, [STORE_VARIABLE]: store },
      maxBuffer: 64 << 20,
    }).catch((error: { stdout?: string; message: string }) => assert.fail(error.stdout ?? error.message));
    const passed = Number(/^# pass (\d+)$/m.exec(stdout)?.[1]);
    assert.ok(passed > 20, stdout.slice(-2000));
    assert.match(stdout, /^# fail 0$/m);
  });
}
