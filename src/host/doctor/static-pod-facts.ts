/** Facts about the manifests of static pods. */
import { readdir, readFile, stat } from 'node:fs/promises';
import { join } from 'node:path';
import { ifMissing, messageOf } from '../../base/errors.ts';
import type { Facts, ManifestProblem } from '../../doctor/port.ts';
import { decodeStaticPod } from '../../kubelet/index.ts';
import { systemClock as clock } from '../process/process.ts';
import type { DoctorContext } from './context.ts';
import { absentFact } from './gather.ts';

/** Limit of the kubelet. */
const MAX_BYTES = 1024 * 1024;

/** Files in the directory of static pods that the kubelet rejects. */
export async function staticPodFacts({ settings }: DoctorContext): Promise<Facts['staticPods']> {
  const { roles, paths, nodeName } = await settings();
  if (!roles.has('node')) throw absentFact('this host runs no kubelet');
  const directory = paths.staticPods;
  const names = (await readdir(directory).catch(ifMissing([]))).filter((name) => !name.startsWith('.')).sort();
  const problems: ManifestProblem[] = [];
  for (const file of names) {
    const origin = join(directory, file);
    try {
      const { size } = await stat(origin);
      if (size > MAX_BYTES) throw new Error(`${origin}: larger than ${MAX_BYTES} bytes`);
      decodeStaticPod(await readFile(origin, 'utf8'), { nodeName, kind: 'file', origin, nowMs: clock.nowMs() });
    } catch (error) {
      problems.push({ file, problem: messageOf(error) });
    }
  }
  return { directory, files: names.length, problems };
}
