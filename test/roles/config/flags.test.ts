/** Our table of flags against upstream's. */
import assert from 'node:assert/strict';
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { test } from 'node:test';
import { type ApiFlag, flagOf } from '../../../src/roles/config/apiserver/flags.ts';
import { ApiValues, readApiArguments } from '../../../src/roles/config/apiserver/index.ts';

const text = await readFile(join(import.meta.dirname, 'kube-apiserver-flags.txt'), 'utf8');
const names = [...text.matchAll(/^([a-z][a-z0-9-]*) 1\./gm)].map(([, name = '']) => name);

/** A value that the flag takes and does not have anyway. */
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

test('every flag of kube-apiserver is known: it counts, is taken with a warning, or is refused', () => {
  assert.ok(names.length > 170);
  const unknown = names.filter((name) => flagOf(name) === undefined);
  assert.deepEqual(unknown, []);
  for (const name of names) {
    const flag = flagOf(name)?.flag;
    if (flag === undefined) continue;
    const value = other(flag);
    if (flag.use === 'refused') assert.throws(() => given(name, value).warnings(), new RegExp(`--${name}=`));
    else {
      const warnings =
        flag.use === 'used' || value === flag.initial ? [] : [`--${name} has no meaning here: ${flag.help}`];
      assert.deepEqual(given(name, value).warnings(), warnings);
    }
    // Nobody is warned of what would be so anyway.
    if (flag.kind !== 'repeated') assert.deepEqual(given(name, flag.initial).warnings(), []);
  }
});

test('a flag that nobody knows is an error', () => {
  assert.throws(() => given('no-such-flag', '1'), /unknown flag --no-such-flag: see kube-apiserver --help/);
});
