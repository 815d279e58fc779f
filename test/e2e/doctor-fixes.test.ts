/**
 * Faults that users meet, each with the fix that `hyperedge doctor` prints: a shell runs the fix as printed, and then
 * the doctor must not report the finding. The table of docs/doctor.md lists these faults and fixes.
 */
import assert from 'node:assert/strict';
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { Drill, type Fault } from './doctor-fixes/drill.ts';
import { prepareImages } from './doctor-fixes/images.ts';
import { RUNNING } from './doctor-fixes/running.ts';
import { STOPPED } from './doctor-fixes/stopped.ts';
import { projectRoot } from './harness.ts';

const FAULT_MS = 300_000;

let drill: Drill;

before(
  async () => {
    drill = await Drill.create();
    await prepareImages(drill);
    await drill.host.start(120_000);
  },
  { timeout: 240_000 },
);
after(() => drill.stop());

const works = (fault: Fault): void => {
  test(`the fix of the check ${fault.id} works if ${fault.what}`, { timeout: FAULT_MS }, () => drill.drill(fault));
};

for (const fault of RUNNING) works(fault);

test('stops the host before the faults of a stopped host are provoked', () => drill.stopHost('TERM'));

for (const fault of STOPPED) works(fault);

test('docs/doctor.md lists every provoked fault with its fix', async () => {
  const all = [...RUNNING, ...STOPPED];
  assert.ok(all.length >= 20);
  const page = await readFile(join(projectRoot, 'docs/doctor.md'), 'utf8');
  const missing = all.map(rowOf).filter((row) => !page.includes(row));
  assert.deepEqual(missing, [], `docs/doctor.md lacks:\n${missing.join('\n')}`);
});

/** Row of the table in docs/doctor.md. A pipe in the fix is escaped, because a pipe ends the cell. */
const rowOf = ({ id, what, fix }: Fault): string => `| \`${id}\` | ${what} | \`${fix.replaceAll('|', '\\|')}\` |`;
