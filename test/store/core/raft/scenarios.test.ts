/**
 * Golden scenarios: `scenarios/*.txt`. Lines that begin with `>` are commands of the driver, the indented lines below
 * are their effects, and `#` starts a comment. With `UPDATE_SCENARIOS=1` the files are rewritten: review every changed
 * line and explain it in the commit.
 */
import assert from 'node:assert/strict';
import { readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, it } from 'node:test';
import { Driver } from './driver.ts';

const folder = join(import.meta.dirname, 'scenarios');

function play(script: string): string {
  const driver = new Driver();
  const lines: string[] = [];
  for (const line of script.split('\n')) {
    if (line.startsWith('  ')) continue;
    lines.push(line);
    if (line.startsWith('>')) for (const reported of driver.run(line.slice(1))) lines.push(`  ${reported}`);
  }
  return lines.join('\n');
}

describe('raft scenarios', () => {
  for (const file of readdirSync(folder).sort()) {
    it(`replays the scenario ${file.replace('.txt', '')} with the recorded messages`, () => {
      const path = join(folder, file);
      const golden = readFileSync(path, 'utf8');
      const played = play(golden);
      if (process.env['UPDATE_SCENARIOS'] === '1') writeFileSync(path, played);
      else assert.equal(played, golden);
    });
  }
});
