/**
 * Validation of definitions compared with upstream. The file has the responses of upstream's API server 1.36 for the
 * definitions in test/upstream/extensions: all causes of a rejection, none for an accepted definition, `null` for a
 * known difference. Lists and structures in messages are omitted.
 */
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { describe, it } from 'node:test';
import { customResourceDefinitions } from '../../../src/api/kinds/cluster/customresourcedefinitions/index.ts';
import type { KubeObject } from '../../../src/api/meta/object.ts';
import { refineKind } from '../../../src/apiserver/custom-resources/compile-rules.ts';
import { DEFINITIONS, type Fields } from '../../upstream/extensions/definitions.ts';
import { RULED } from '../../upstream/extensions/rules.ts';

const ANSWERS: Record<'definitions' | 'rules', (string[] | null)[]> = JSON.parse(
  readFileSync(new URL('judged.json', import.meta.url), 'utf8'),
);
const kind = refineKind(customResourceDefinitions as never);
const GO_VALUE = /Invalid value: [[{].*[\]}]: /s;

function causes(document: Fields): string[] {
  const object = structuredClone(document) as unknown as KubeObject;
  kind.setDefaults?.(object);
  kind.strategy.prepareForCreate?.(object, { nowMs: 0 } as never);
  const found = [...(kind.strategy.validate?.(object) ?? []), ...(kind.strategy.validateCreate?.(object) ?? [])];
  return found.map(({ field, message }) => `${field}: ${message}`.replace(GO_VALUE, 'Invalid value: …: ')).toSorted();
}

/** Errors of metadata are not compared. */
const isOwn = (text: string): boolean => !text.startsWith('metadata.');

describe('CustomResourceDefinitions', () => {
  for (const [name, documents] of [
    ['definitions', DEFINITIONS],
    ['rules', RULED],
  ] as const) {
    it(`CustomResourceDefinitions are accepted and rejected as upstream does: ${name}`, () => {
      assert.equal(ANSWERS[name].length, documents.length, 'recorded for other definitions');
      for (const [index, document] of documents.entries()) {
        const expected = ANSWERS[name][index];
        if (expected === null || expected === undefined) continue;
        assert.deepEqual(causes(document).filter(isOwn), expected.filter(isOwn), JSON.stringify(document['spec']));
      }
    });
  }
});
