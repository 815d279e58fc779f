/** Templates whose processing would block the API server. */
import assert from 'node:assert/strict';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { AttackCase } from '../port.ts';

const LONGEST_MS = 2_000;

export const cases: readonly AttackCase[] = [
  {
    finding: 44,
    title: 'a template of 187 KB whose expressions generate millions of characters is refused without a stall',
    attack: async (lab) => {
      const tenant = await lab.tenant('edit');
      const from = '[\\w]{255}'.repeat(16);
      const parameters = Array.from({ length: 1_000 }, (_, index) => ({
        name: `P${index}`,
        generate: 'expression',
        from,
      }));
      const path = `/apis/template.openshift.io/v1/namespaces/${tenant.namespace}/processedtemplates`;
      const body = { apiVersion: 'template.openshift.io/v1', kind: 'Template', metadata: { name: 't' }, parameters };
      // A command-line argument has at most 128 KiB.
      const file = join(lab.appliance.root, 'attack-template.json');
      await writeFile(file, JSON.stringify(body));
      let isOver = false;
      let longestMs = 0;
      const watching = (async () => {
        while (!isOver) {
          const begunMs = performance.now();
          assert.equal((await lab.curl('https://127.0.0.1:8443/livez')).code, 200);
          longestMs = Math.max(longestMs, performance.now() - begunMs);
        }
      })();
      const begunMs = performance.now();
      const answer = await lab.curl(`https://127.0.0.1:8443${path}`, [
        ...['-X', 'POST', '-H', `Authorization: Bearer ${tenant.token}`, '-H', 'Content-Type: application/json'],
        ...['--data-binary', `@${file}`],
      ]);
      isOver = true;
      await watching;
      assert.equal(answer.code, 422, answer.body.slice(0, 300));
      assert.match(answer.body, /the expressions of a template must have and generate at most 65536 characters/);
      assert.ok(performance.now() - begunMs < LONGEST_MS * 2 && longestMs < LONGEST_MS, `${longestMs} ms`);
    },
  },
];
