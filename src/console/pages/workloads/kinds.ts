import type { KubeObject, ResourceType } from '../../../api/meta/object.ts';
import { CRON_JOBS, DAEMON_SETS, DEPLOYMENTS, JOBS, STATEFUL_SETS } from '../../data/api/resources.ts';

export const WORKLOADS: readonly ResourceType<KubeObject>[] = [
  DEPLOYMENTS,
  STATEFUL_SETS,
  DAEMON_SETS,
  JOBS,
  CRON_JOBS,
];

export const canScale = ({ plural }: ResourceType): boolean => plural === 'deployments' || plural === 'statefulsets';
export const canRestart = ({ plural }: ResourceType): boolean =>
  canScale({ plural } as ResourceType) || plural === 'daemonsets';
