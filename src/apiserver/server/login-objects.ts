/** Gives the OAuth server, which runs in this process, access to cluster objects. */
import type { KubeObject } from '../../api/meta/object.ts';
import { isApiError } from '../../api/meta/status.ts';
import { bootstrapUser, tokenName } from '../authentication/oauth-tokens.ts';
import type { ServiceAccountTokens } from '../authentication/service-accounts.ts';
import { ownRequest } from '../bootstrap/index.ts';
import type { ServedKind } from '../pipeline/kinds.ts';
import type { WriteContext } from '../rest/context.ts';
import { createObject } from '../rest/writes/create.ts';
import { deleteObject } from '../rest/writes/delete.ts';
import { updateObject } from '../rest/writes/update.ts';
import type { LoginObjects, LoginResource } from './login-port.ts';

function split(resource: LoginResource): { readonly plural: string; readonly group: string } {
  const dot = resource.indexOf('.');
  return { plural: resource.slice(0, dot), group: resource.slice(dot + 1) };
}

export function createLoginObjects(
  context: WriteContext,
  tokens?: Pick<ServiceAccountTokens, 'authenticate'>,
): LoginObjects {
  const kindOf = (resource: LoginResource): ServedKind | undefined => {
    const { plural, group } = split(resource);
    return context.kinds.all.find((kind) => kind.plural === plural && kind.group === group);
  };
  const request = (resource: LoginResource, namespace: string, name: string) => {
    const { plural, group } = split(resource);
    return ownRequest(context, plural, group, namespace, name);
  };
  return {
    freshen: async () => {
      await context.cache.freshen();
    },
    get: <T extends KubeObject>(resource: LoginResource, name: string, namespace = '') =>
      kindOf(resource)?.cache?.get(namespace, name)?.parse<T>(),
    list: <T extends KubeObject>(resource: LoginResource) =>
      (kindOf(resource)?.cache?.list(undefined) ?? []).map((each) => each.parse<T>()),
    create: async <T extends KubeObject>(resource: LoginResource, object: T) => {
      const { name = '', namespace = '' } = object.metadata ?? {};
      const created = await createObject(context, request(resource, namespace, name), structuredClone(object));
      return created.parse<T>();
    },
    update: async <T extends KubeObject>(resource: LoginResource, name: string, change: (current: T) => T) => {
      const write = request(resource, '', name);
      const { strategy } = write.kind.definition;
      const updated = await updateObject(context, write, {
        strategy,
        next: (current) => change(structuredClone(current) as T),
      });
      return updated.object.parse<T>();
    },
    remove: async (resource, name) => {
      try {
        const deleted = await deleteObject(context, request(resource, '', name), {
          gracePeriodSeconds: 0,
          propagation: 'Background',
          uid: undefined,
          resourceVersion: undefined,
          dryRun: false,
        });
        return deleted.removed;
      } catch (error) {
        if (isApiError(error, 'NotFound')) return false;
        throw error;
      }
    },
    tokenName,
    serviceAccountOf: (token) => tokens?.authenticate(token, undefined)?.user.name,
    bootstrapUser: () => bootstrapUser(context.cache),
  };
}
