/** Maintains Group objects for the groups that a provider reports. Source: openshift/oauth-server pkg/groupmapper. */

import { isApiError } from '../../../api/meta/status.ts';
import type { LoginObjects } from '../../../apiserver/server/login-port.ts';
import type { Group } from '../kinds/users/types.ts';

const GROUPS = 'groups.user.openshift.io';
const SYNCED = 'synced';
const MAX_GROUPS = 200;

/** Adds the user to `groups`, and removes the user from the other groups that were created for this provider. */
export async function syncGroups(
  objects: LoginObjects,
  provider: string,
  user: string,
  groups: readonly string[],
): Promise<void> {
  const annotation = `oauth.openshift.io/idp.${provider}`;
  const wanted = new Set(groups.filter((each) => /^[^/%:~\p{Cc}\p{Cs}]{1,200}$/u.test(each)).slice(0, MAX_GROUPS));
  for (const name of wanted) {
    const present = objects.get<Group>(GROUPS, name);
    if (present?.users?.includes(user) === true) continue;
    if (present === undefined) {
      try {
        await objects.create<Group>(GROUPS, {
          metadata: { name, annotations: { [annotation]: SYNCED } },
          users: [user],
        });
        continue;
      } catch (error) {
        if (!isApiError(error, 'AlreadyExists')) throw error;
      }
    }
    await objects.update<Group>(GROUPS, name, (current) =>
      // Groups that an administrator has created are not changed.
      current.metadata?.annotations?.[annotation] === SYNCED
        ? { ...current, users: [...new Set([...(current.users ?? []), user])] }
        : current,
    );
  }
  for (const group of objects.list<Group>(GROUPS)) {
    const name = group.metadata?.name ?? '';
    if (wanted.has(name) || group.metadata?.annotations?.[annotation] !== SYNCED) continue;
    if (group.users?.includes(user) !== true) continue;
    await objects.update<Group>(GROUPS, name, (current) => ({
      ...current,
      users: (current.users ?? []).filter((each) => each !== user),
    }));
  }
}
