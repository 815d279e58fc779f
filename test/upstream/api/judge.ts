/** Common part of the commands that compare this API server with another one. */
import { writeFile } from 'node:fs/promises';
import { basename } from 'node:path';
import { parseArgs } from 'node:util';
import { Findings } from './findings.ts';
import type { Pair } from './pair.ts';

export type Part = (pair: Pair, findings: Findings) => Promise<void>;

/**
 * Runs `PROGRAM [--report FILE] [PART ...]`: sends the requests of the parts (default: all) to both servers and reports
 * every difference. Throws if PROGRAM is this project's executable, which would never differ.
 */
export async function judge(
  command: string,
  programName: string,
  parts: Readonly<Record<string, Part>>,
  start: (program: string) => Promise<Pair>,
): Promise<void> {
  const { values, positionals } = parseArgs({
    options: { report: { type: 'string', default: 'differences.txt' } },
    allowPositionals: true,
  });
  const [program, ...wanted] = positionals;
  if (program === undefined || wanted.some((part) => !(part in parts))) {
    console.error(`usage: ${basename(command)} ${programName} [--report FILE] [${Object.keys(parts).join('|')} ...]`);
    process.exit(2);
  }
  const pair = await start(program);
  try {
    await refuseOurselves(pair, program);
    const findings = new Findings();
    for (const [name, part] of Object.entries(parts)) {
      if (wanted.length > 0 && !wanted.includes(name)) continue;
      const before = findings.count;
      await part(pair, findings);
      console.log(`${name}: ${findings.requests} requests so far, ${findings.count - before} differences`);
    }
    await writeFile(values.report, findings.text());
    console.log(`${findings.kinds} kinds of differences: ${values.report}`);
  } finally {
    await pair.stop();
  }
}

async function refuseOurselves({ upstream }: Pair, program: string): Promise<void> {
  const { bytes } = await upstream.send({ method: 'GET', path: '/version' });
  if (bytes.includes('hyperedge')) throw new Error(`${program} is hyperedge itself, not upstream's program`);
}
