/**
 * `node test/upstream/differential.ts KUBE-APISERVER [--report FILE] [PART ...]`: the same requests to upstream's kube-apiserver and to ours, every difference listed.
 *
 * Not part of `npm test`: upstream's executable has to be built first. What comes out needs judging, since upstream's is a version of its own:
 * a difference is ours to mend unless a current Kubernetes answers as we do.
 */
import { writeFile } from 'node:fs/promises';
import { parseArgs } from 'node:util';
import { Findings } from './api/findings.ts';
import { startPair } from './api/pair.ts';
import { PARTS } from './api/parts.ts';

const { values, positionals } = parseArgs({
  options: { report: { type: 'string', default: 'differences.txt' } },
  allowPositionals: true,
});
const [program, ...wanted] = positionals;
const unknown = wanted.filter((part) => !(part in PARTS));
if (program === undefined || unknown.length > 0) {
  console.error(`usage: differential.ts KUBE-APISERVER [--report FILE] [${Object.keys(PARTS).join('|')} ...]`);
  process.exit(2);
}
const pair = await startPair(program);
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
