/** Sends the recorded requests of real clients again and compares each response with the golden one, field by field. */
import assert from 'node:assert/strict';
import { readdirSync } from 'node:fs';
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, it } from 'node:test';
import { differences } from './normalise.ts';
import { goldenOf } from './recorded/golden.ts';
import { parseScript } from './recorded/script.ts';

const directory = join(import.meta.dirname, 'recorded/scripts');
const SHOWN = 20;

function lines(text: string): string[] {
  return text.split('\n').filter((line) => line !== '');
}

describe('recorded requests', { concurrency: 2 }, () => {
  for (const file of readdirSync(directory).filter((name) => name.endsWith('.jsonl'))) {
    it(`receives the golden responses for the requests of ${file.replace('.jsonl', '')}`, async () => {
      const steps = parseScript(await readFile(join(directory, file), 'utf8'));
      const wanted = lines(await readFile(join(directory, file.replace('.jsonl', '.golden')), 'utf8'));
      const given = lines(await goldenOf(steps));
      const found: string[] = [];
      for (const [index, step] of steps.entries())
        for (const { path, left, right } of differences(
          JSON.parse(given[index] ?? 'null'),
          JSON.parse(wanted[index] ?? 'null'),
        ))
          found.push(
            `${index + 1} ${step.method} ${step.path} ${path}: ${JSON.stringify(left)}, was ${JSON.stringify(right)}`,
          );
      assert.deepEqual(
        found.slice(0, SHOWN),
        [],
        `${found.length} differences; explain them and run npm run record -- --golden`,
      );
    });
  }
});
