/**
 * `node test/upstream/extensions.ts APIEXTENSIONS-APISERVER [--report FILE] [PART ...]`: the same definitions and custom resources to upstream's
 * own server of custom resources and to ours, every difference listed.
 *
 * Not part of `npm test`: upstream's executable has to be built first (k8s.io/apiextensions-apiserver), and an `etcd` found.
 */
import { writeFile } from 'node:fs/promises';
import { parseArgs } from 'node:util';
import { Findings } from './api/findings.ts';
import { startExtensionsPair } from './api/pair.ts';
import { PARTS } from './extensions/parts.ts';

const { values, positionals } = parseArgs({
  options: { report: { type: 'string', default: 'differences.txt' } },
  allowPositionals: true,
});
const [program, ...wanted] = positionals;
if (program === undefined || wanted.some((part) => !(part in PARTS))) {
  console.error(`usage: extensions.ts APIEXTENSIONS-APISERVER [--report FILE] [${Object.keys(PARTS).join('|')} ...]`);
  process.exit(2);
}
const pair = await startExtensionsPair(program);
try {
  const findings = new Findings();
  for (const [name, part] of Object.entries(PARTS)) {
    if (wanted.length > 0 && !wanted.includes(name)) continue;
    const before = findings.count;
    await part(pair, findings);
    console.log(`${name}: ${findings.asked} requests so far, ${findings.count - before} differences`);
  }
  await writeFile(values.report, findings.text());
  console.log(`${findings.kinds} kinds of differences: ${values.report}`);
} finally {
  await pair.stop();
}
