import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { test } from 'node:test';

test('a runtime that names an unknown case as unsupported fails the conformance tests', () => {
  const module = import.meta.resolve('./runtime.ts');
  const script = `
    const { runtimeConformance } = await import(${JSON.stringify(module)});
    runtimeConformance('none', () => Promise.reject(new Error('no runtime')), { 'no such case': 'reason' });`;
  const { NODE_TEST_CONTEXT: _, ...env } = process.env;
  const args = ['--input-type=module', '--test-name-pattern=no such case', '--eval', script];
  const { status, stdout } = spawnSync(process.execPath, args, { env, encoding: 'utf8', timeout: 30_000 });
  assert.equal(status, 1, stdout);
  assert.match(stdout, /titles that are not those of cases[\s\S]*'no such case'/);
});
