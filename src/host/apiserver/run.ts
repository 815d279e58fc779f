/** Runs the API server with kube-apiserver's own flags. */

import { ApiUsageProblem, ApiValues, readApiArguments } from '../../apiserver/config/index.ts';
import { runUntilSignal } from '../process/component.ts';
import { notifyReady } from '../process/notify.ts';
import { createProcessLog } from '../process/process.ts';

export { ApiUsageProblem };

export type ApiPlan =
  | { readonly kind: 'help' }
  | { readonly kind: 'version' }
  | { readonly kind: 'run'; readonly values: ApiValues };

/**
 * Profiles of the API server. `kubernetes`: only the API of kube-apiserver. `okd`: also the kinds of OpenShift and of
 * this project.
 */
export const API_PROFILES = ['kubernetes', 'okd'] as const;
export type ApiProfile = (typeof API_PROFILES)[number];

/** Parses the flags. Throws ApiUsageProblem with the flag and the fix. */
export function planApi(argv: readonly string[]): ApiPlan {
  // As in upstream, file names are relative to the working directory.
  const values = new ApiValues((path) => path);
  if (readApiArguments(argv, values) === 'help') return { kind: 'help' };
  if (values.boolean('version')) return { kind: 'version' };
  return { kind: 'run', values };
}

/**
 * Runs the API server until a signal. Resolves with the exit code. Throws CodedErrors and ApiUsageProblems that name
 * the flag or the file.
 */
export async function runApi(values: ApiValues, profile: ApiProfile = 'okd'): Promise<number> {
  const log = createProcessLog('apiserver', Math.max(2, Math.min(10, values.number('v'))));
  return runUntilSignal(log, async () => {
    const { startApiWith } = await import('./server.ts');
    const options = {
      referredToBy: 'the command line',
      ownHost: false,
      soleWriter: false,
      upstreamOnly: profile === 'kubernetes',
      // As in upstream, world-readable files are accepted.
      onOpenSecret: (problem: string) => log.warn(problem),
    };
    const component = await startApiWith(values, options, log);
    await notifyReady(process.env, log);
    return component;
  });
}
