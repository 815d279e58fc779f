/**
 * The verbs and flags of kubectl 1.36, as `test/upstream/record-kubectl-flags.ts` recorded them, compared with those of
 * this client. What is missing is listed in `missing-flags.ts` with its reason; the list must shrink with each verb.
 */
import assert from 'node:assert/strict';
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { test } from 'node:test';
import type { FlagSpecs } from '../../src/kubectl/core/flags.ts';
import type { Verb } from '../../src/kubectl/port.ts';
import { GLOBAL_FLAGS } from '../../src/kubectl/run.ts';
import { VERBS } from '../../src/kubectl/verbs.ts';
import { MISSING_EVERYWHERE, MISSING_FLAGS, MISSING_GLOBAL_FLAGS, MISSING_VERBS } from './missing-flags.ts';

interface Facts {
  readonly global: Readonly<Record<string, string>>;
  /** Short name by flag, by verb. */
  readonly verbs: Readonly<Record<string, Readonly<Record<string, string>>>>;
}

const facts: Facts = JSON.parse(await readFile(join(import.meta.dirname, 'golden/flags.json'), 'utf8'));

/** Verbs by their words, such as `rollout status`. */
function byWords(verbs: readonly Verb[], before: readonly string[] = []): Map<string, Verb> {
  return new Map(
    verbs.flatMap((verb) => {
      const words = [...before, verb.name];
      return [[words.join(' '), verb] as const, ...byWords(verb.verbs ?? [], words)];
    }),
  );
}

const own = byWords(VERBS);

test('the built-in client has the verbs of kubectl except for listed exceptions', () => {
  const missing = Object.keys(facts.verbs).filter((words) => !own.has(words));
  assert.deepEqual(missing.toSorted(), Object.keys(MISSING_VERBS).toSorted());
});

test('the verbs of the built-in client have the flags of kubectl except for listed exceptions', () => {
  const missing: string[] = [];
  for (const [words, flags] of Object.entries(facts.verbs)) {
    const verb = own.get(words);
    if (verb === undefined) continue;
    const known: FlagSpecs = { ...GLOBAL_FLAGS, ...verb.flags };
    for (const [name, short] of Object.entries(flags)) {
      if (!(name in known)) {
        if (!(name in MISSING_EVERYWHERE)) missing.push(`${words} --${name}`);
      } else if (!(name in facts.global)) assert.equal(known[name]?.short ?? '', short, `${words} --${name}`);
    }
  }
  assert.deepEqual(missing.toSorted(), Object.keys(MISSING_FLAGS).toSorted());
});

test('the built-in client has the global flags of kubectl except for listed exceptions', () => {
  const missing = Object.keys(facts.global).filter((name) => !(name in GLOBAL_FLAGS));
  assert.deepEqual(missing.toSorted(), Object.keys(MISSING_GLOBAL_FLAGS).toSorted());
});
