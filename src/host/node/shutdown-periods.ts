/**
 * Arguments of node-config.yaml for a graceful node shutdown. They are named after the fields of KubeletConfiguration.
 */

import { CodedError } from '../../base/errors.ts';
import { parseDuration } from '../../base/time/duration.ts';
import { periodsOf, type ShutdownPeriod } from '../../kubelet/core/pod-plan/shutdown.ts';
import { type NodeConfig, pairArgument, singleArgument } from '../config/node-config.ts';

type KubeletArguments = NonNullable<NodeConfig['kubeletArguments']>;

const TOTAL = 'shutdown-grace-period';
const CRITICAL = 'shutdown-grace-period-critical-pods';
const BY_PRIORITY = 'shutdown-grace-period-by-pod-priority';

/**
 * `shutdown-grace-period-by-pod-priority` contains `PRIORITY=DURATION` pairs. Throws CodedError 'bad-config' with the
 * argument. Source: pkg/kubelet/apis/config/validation.
 */
export function shutdownPeriods(file: string, given: KubeletArguments): readonly ShutdownPeriod[] {
  const bad = (name: string, why: string): CodedError =>
    new CodedError('bad-config', `${file}: kubeletArguments.${name}: ${why}`);
  const seconds = (name: string, text: string): number => {
    const ms = parseDuration(text);
    if (ms === undefined || ms < 0) throw bad(name, `"${text}" is not a duration such as 30s`);
    if (ms % 1000 !== 0) throw bad(name, `"${text}" is not a whole number of seconds`);
    return ms / 1000;
  };
  const total = seconds(TOTAL, singleArgument(file, TOTAL, given[TOTAL]) ?? '0s');
  const critical = seconds(CRITICAL, singleArgument(file, CRITICAL, given[CRITICAL]) ?? '0s');
  const pairs = Object.entries(pairArgument(file, BY_PRIORITY, given[BY_PRIORITY]));
  if (critical > total) throw bad(CRITICAL, `must be at most ${TOTAL}`);
  if (pairs.length > 0 && total > 0) throw bad(BY_PRIORITY, `give either this flag or ${TOTAL}`);
  if (pairs.length === 0) return periodsOf(total, critical);
  return pairs.map(([priority, text]) => {
    if (!/^-?\d{1,10}$/.test(priority)) throw bad(BY_PRIORITY, `"${priority}" is not a priority`);
    return { priority: Number(priority), seconds: seconds(BY_PRIORITY, text) };
  });
}
