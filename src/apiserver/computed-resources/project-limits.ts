/**
 * ProjectRequestLimit: limits the projects that a user may have requested. Source: openshift/openshift-apiserver
 * pkg/project/apiserver/admission/requestlimit.
 */
import { ApiError } from '../../api/meta/status.ts';
import type { UserInfo } from '../../api/registry/definition.ts';
import type { ServerContext } from '../rest/context.ts';

const REQUESTER = 'openshift.io/requester';

/** Throws 'Forbidden' if the user has reached the limit of requested projects. */
export function requireProjectsLeft(
  context: Pick<ServerContext, 'cache' | 'config'>,
  user: UserInfo,
  name: string,
): void {
  const limits = context.config.admission?.projectRequestLimits ?? [];
  if (limits.length === 0) return;
  const labels: Readonly<Record<string, string>> =
    context.cache.kind('openshift.io/users').get('', user.name)?.labels() ?? {};
  const limit = limits.find(({ selector }) => Object.entries(selector).every(([key, value]) => labels[key] === value));
  const most = limit?.maxProjects;
  if (most === undefined) return;
  let count = 0;
  for (const namespace of context.cache.kind('namespaces').list(undefined)) {
    const { annotations = {}, deletionTimestamp } =
      namespace.shared<{
        metadata?: { annotations?: Record<string, string>; deletionTimestamp?: string };
      }>().metadata ?? {};
    if (annotations[REQUESTER] === user.name && deletionTimestamp === undefined) count += 1;
  }
  if (count < most) return;
  const why = `user ${user.name} cannot create more than ${most} project(s)`;
  throw new ApiError(
    'Forbidden',
    `projectrequests.project.openshift.io ${JSON.stringify(name)} is forbidden: ${why}.`,
    {
      name,
      group: 'project.openshift.io',
      kind: 'projectrequests',
    },
  );
}
