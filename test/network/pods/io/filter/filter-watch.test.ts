/** Transactions of other programs on this program's tables, in a network namespace of its own. */
import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { join } from 'node:path';
import { test } from 'node:test';
import { promisify } from 'node:util';

const SOURCE = join(import.meta.dirname, '../../../../../src');
const SCRIPT = `
import { execFileSync } from 'node:child_process';
import { setTimeout as sleep } from 'node:timers/promises';
const { watchFilter } = await import(${JSON.stringify(join(SOURCE, 'network/pods/io/filter/filter-watch.ts'))});
const { ownTransaction } = await import(${JSON.stringify(join(SOURCE, 'base/linux/nftables-mark.ts'))});
const { silentLog } = await import(${JSON.stringify(join(SOURCE, 'base/log.ts'))});
const nft = (program) => execFileSync('nft', ['-f', '-'], { input: program });
const reports = [];
const watch = watchFilter({
  nft: 'nft', tables: ['own', 'own-policy'], log: silentLog,
  changed: (foreign) => reports.push([...(foreign ?? ['missed'])].sort().join()),
});
const report = async (program) => {
  const before = reports.length;
  nft(program);
  for (let i = 0; i < 100 && reports.length === before; i++) await sleep(20);
  return reports.slice(before).join('|');
};
for (let i = 0; i < 100 && reports.length === 0; i++) {
  nft('add table ip started; delete table ip started');
  await sleep(50);
}
const own = \`add table ip own
add set ip own s { type mark; }
add element ip own s { 1, 2, 3 }
add table inet own-policy
add chain inet own-policy c
add rule inet own-policy c counter drop
add rule inet own-policy c counter accept
\`;
const found = {
  own: await report(ownTransaction(own)),
  foreign: await report('add table ip other'),
  element: await report('delete element ip own s { 2 }'),
  flush: await report('flush set ip own s'),
  rule: await report('flush chain inet own-policy c'),
  both: await report('add element ip own s { 7 }\\nadd chain inet own-policy d'),
  again: await report(ownTransaction('add element ip own s { 1 }')),
  all: await report('flush ruleset'),
};
watch.stop();
process.stdout.write(JSON.stringify(found));
`;

const skip = process.getuid?.() === 0 ? false : 'needs root for a network namespace of its own';

test("detects which of the host's own nftables tables another program has changed, down to single elements", {
  skip,
}, async () => {
  const args = ['--net', process.execPath, '--input-type=module', '-e', SCRIPT];
  const { stdout } = await promisify(execFile)('unshare', args, { timeout: 30_000 });
  assert.deepEqual(JSON.parse(stdout), {
    own: '',
    foreign: '',
    element: 'ip own',
    flush: 'ip own',
    rule: 'inet own-policy',
    both: 'inet own-policy,ip own',
    again: '',
    all: 'inet own-policy,ip own',
  });
});
