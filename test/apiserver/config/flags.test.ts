/** Compares the flag table with upstream's flags. */
import assert from 'node:assert/strict';
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { test } from 'node:test';
import { type ApiFlag, flagOf } from '../../../src/apiserver/config/flags.ts';
import { ApiValues, readApiArguments } from '../../../src/apiserver/config/index.ts';

const text = await readFile(join(import.meta.dirname, 'kube-apiserver-flags.txt'), 'utf8');
const names = [...text.matchAll(/^([a-z][a-z0-9-]*) 1\./gm)].map(([, name = '']) => name);

/** A valid value that differs from the default. */
function other({ kind, initial, choices }: ApiFlag): string {
  const choice = choices?.find((each) => each !== initial && each !== '');
  if (choices !== undefined) return choice ?? initial;
  if (kind === 'boolean') return initial === 'true' ? 'false' : 'true';
  if (kind === 'int') return '7';
  if (kind === 'float') return '0.01';
  return kind === 'duration' ? '7s' : 'x';
}

function given(name: string, value: string): ApiValues {
  const values = new ApiValues((path) => path);
  readApiArguments([`--${name}=${value}`], values);
  return values;
}

test('every flag of kube-apiserver is supported, accepted with a warning, or rejected', () => {
  assert.ok(names.length > 170);
  const unknown = names.filter((name) => flagOf(name) === undefined);
  assert.deepEqual(unknown, []);
  for (const name of names) {
    const flag = flagOf(name)?.flag;
    if (flag === undefined) continue;
    const value = other(flag);
    if (flag.use === 'refused') assert.throws(() => given(name, value).warnings(), new RegExp(`--${name}=`));
    else {
      const warnings = flag.use === 'used' || value === flag.initial ? [] : [`--${name} has no effect: ${flag.help}`];
      assert.deepEqual(given(name, value).warnings(), warnings);
    }
    // The default value causes no warning.
    if (flag.kind !== 'repeated') assert.deepEqual(given(name, flag.initial).warnings(), []);
  }
});

test('rejects an unknown flag of kube-apiserver', () => {
  assert.throws(() => given('no-such-flag', '1'), /unknown flag --no-such-flag: see kube-apiserver --help/);
});
