/**
 * Checks passwords with the configured providers in their order. Source: openshift/oauth-server
 * pkg/authenticator/password.
 */
import type { Secret } from '../../../api/generated/core/v1.ts';
import type { KubeObject } from '../../../api/meta/object.ts';
import type { LoginObjects } from '../../../apiserver/server/login-port.ts';
import { messageOf } from '../../../base/errors.ts';
import type { Log } from '../../../base/log.ts';
import type { LoginPorts } from '../port.ts';
import type { IdentityProvider, LoginIdentity, MappingMethod, OAuthConfiguration } from '../types.ts';
import { firstValue, parseHtpasswd } from './htpasswd.ts';
import { type LoginUser, MappingError, mapToUser } from './mapping.ts';
import { syncGroups } from './sync.ts';

const CONFIG_NAMESPACE = 'openshift-config';
const MIN_BOOTSTRAP_PASSWORD = 23;
const METHODS: readonly MappingMethod[] = ['claim', 'lookup', 'add', 'generate'];
export const BOOTSTRAP_LOGIN = 'kubeadmin';
export const BOOTSTRAP_USER = 'kube:admin';

export interface ProvidersDeps {
  readonly objects: LoginObjects;
  readonly ports: LoginPorts;
  readonly log: Log;
  /** Providers from the bootstrap file. */
  readonly configured: readonly IdentityProvider[];
}

export class Providers {
  readonly #deps: ProvidersDeps;

  constructor(deps: ProvidersDeps) {
    this.#deps = deps;
  }

  /** `spec` of the OAuth object `cluster`. Empty if the kind is not served or the object does not exist. */
  get configuration(): OAuthConfiguration {
    const stored = this.#deps.objects.get<KubeObject & { spec?: OAuthConfiguration }>(
      'oauths.config.openshift.io',
      'cluster',
    );
    return stored?.spec ?? {};
  }

  /** Providers of the OAuth object, and then those of the bootstrap file whose names are not used yet. */
  get all(): readonly IdentityProvider[] {
    // Only the bootstrap file may refer to files of the host, so references in the object are removed.
    const stored = (this.configuration.identityProviders ?? []).map(withoutFiles);
    const names = new Set(stored.map(({ name }) => name));
    return [...stored, ...this.#deps.configured.filter(({ name }) => !names.has(name))];
  }

  get takePasswords(): boolean {
    return (
      this.#deps.objects.bootstrapUser() !== undefined ||
      this.all.some(({ htpasswd, ldap }) => htpasswd !== undefined || ldap !== undefined)
    );
  }

  /**
   * Returns the user. Returns undefined for an unknown user and for a wrong password, after the same amount of work.
   */
  async checkPassword(username: string, password: string): Promise<LoginUser | undefined> {
    const { objects, ports, log } = this.#deps;
    // An empty password is rejected, because an LDAP server treats it as an anonymous bind.
    if (username === '' || password === '') return undefined;
    await objects.freshen();
    if (username === BOOTSTRAP_LOGIN) {
      const admin = objects.bootstrapUser();
      if (admin !== undefined) {
        const good = await ports.passwords.verify(password, admin.hash);
        if (good && password.length >= MIN_BOOTSTRAP_PASSWORD) return { name: BOOTSTRAP_USER, uid: admin.uid };
      }
    }
    for (const provider of this.all) {
      try {
        const identity = await this.#authenticate(provider, username, password);
        if (identity !== undefined) return await this.userOf(provider, identity);
      } catch (error) {
        if (error instanceof MappingError) {
          log.warn('login refused', { provider: provider.name, error: error.message });
          return undefined;
        }
        log.warn('identity provider failed', { provider: provider.name, error: messageOf(error) });
      }
    }
    return undefined;
  }

  /** Maps an identity to its user. Rejects with MappingError. */
  async userOf(provider: IdentityProvider, identity: LoginIdentity): Promise<LoginUser> {
    const { mappingMethod = 'claim' } = provider;
    const method = METHODS.find((each) => each === mappingMethod);
    if (method === undefined)
      throw new MappingError(
        `identityProviders[${provider.name}].mappingMethod: ${JSON.stringify(mappingMethod)} is not supported; give one of ${METHODS.join(', ')}`,
      );
    const user = await mapToUser(this.#deps.objects, identity, method);
    if (identity.groups !== undefined) await syncGroups(this.#deps.objects, provider.name, user.name, identity.groups);
    return user;
  }

  async #authenticate(
    provider: IdentityProvider,
    username: string,
    password: string,
  ): Promise<LoginIdentity | undefined> {
    if (provider.htpasswd !== undefined) return this.#fromHtpasswd(provider, username, password);
    if (provider.ldap !== undefined) return this.#fromLdap(provider, username, password);
    return undefined;
  }

  async #fromHtpasswd(
    { name, htpasswd }: IdentityProvider,
    username: string,
    password: string,
  ): Promise<LoginIdentity | undefined> {
    const { ports } = this.#deps;
    const text = await this.text('secrets', htpasswd?.fileData, htpasswd?.file, 'htpasswd');
    const { hashes, costliest } = parseHtpasswd(text ?? '');
    const hash = hashes.get(username);
    // For an unknown user, verify another hash, so that the check takes as long as for a known user.
    const good = await ports.passwords.verify(password, hash ?? costliest);
    if (hash === undefined || !good) return undefined;
    return { provider: name, id: username, preferredUserName: username, fullName: '', extra: {} };
  }

  async #fromLdap(provider: IdentityProvider, username: string, password: string): Promise<LoginIdentity | undefined> {
    const { ldap = {}, name } = provider;
    const { id = ['dn'], preferredUsername = ['uid'], name: names = ['cn'], email = ['mail'] } = ldap.attributes ?? {};
    const entry = await this.#deps.ports.ldap.authenticate(
      {
        url: ldap.url ?? '',
        bindDn: ldap.bindDN ?? '',
        bindPassword: (await this.text('secrets', ldap.bindPassword, ldap.bindPasswordFile, 'bindPassword')) ?? '',
        insecure: ldap.insecure ?? false,
        ca: await this.text('configmaps', ldap.ca, ldap.caFile, 'ca.crt'),
        attributes: [...id, ...preferredUsername, ...names, ...email, 'memberOf'].filter((each) => each !== 'dn'),
      },
      username,
      password,
    );
    if (entry === undefined) return undefined;
    const read = (attributes: readonly string[]): string =>
      firstValue(attributes, (each) => (each === 'dn' ? entry.dn : entry.values.get(each.toLowerCase())?.[0]));
    const identity = read(id);
    if (identity === '') throw new MappingError(`${entry.dn}: has none of the attributes ${id.join(', ')}`);
    const mail = read(email);
    const memberships = entry.values.get('memberof') ?? [];
    return {
      provider: name,
      id: id.includes('dn') && identity === entry.dn ? Buffer.from(identity).toString('base64url') : identity,
      preferredUserName: read(preferredUsername) || username,
      fullName: read(names),
      extra: mail === '' ? {} : { email: mail },
      ...(memberships.length === 0 ? {} : { groups: memberships.flatMap(commonName) }),
    };
  }

  /**
   * Reads a value from a key of a Secret or ConfigMap in openshift-config, or from a file of the host. A final newline
   * is removed.
   */
  async text(
    plural: 'secrets' | 'configmaps',
    reference: { readonly name?: string } | undefined,
    file: string | undefined,
    key: string,
  ): Promise<string | undefined> {
    const { objects, ports } = this.#deps;
    if (file !== undefined) return (await ports.readFile(file)).replace(/\n$/, '');
    if (reference?.name === undefined || reference.name === '') return undefined;
    const object = objects.get<Secret>(`${plural}.`, reference.name, CONFIG_NAMESPACE);
    const value = object?.data?.[key];
    if (value === undefined)
      throw new Error(`${plural} ${CONFIG_NAMESPACE}/${reference.name}: has no key ${key}; add it`);
    const text = plural === 'secrets' ? Buffer.from(value, 'base64').toString('utf8') : value;
    return text.replace(/\n$/, '');
  }
}

/**
 * Common name in the first component of a distinguished name. Empty list if the component is not a common name, has
 * further attributes, or contains escaped characters: a part of a name could be the name of another group.
 */
const commonName = (dn: string): string[] => {
  const [, name] = /^cn=([^,+\\]+)(?:,|$)/i.exec(dn) ?? [];
  return name === undefined ? [] : [name.trim()];
};

function withoutFiles(provider: IdentityProvider): IdentityProvider {
  const drop = <T extends object>(part: T | undefined): T | undefined =>
    part === undefined
      ? undefined
      : (Object.fromEntries(
          Object.entries(part).filter(([key]) => key !== 'file' && !(key.endsWith('File') && key !== 'fileData')),
        ) as T);
  return {
    ...provider,
    ...(provider.htpasswd === undefined ? {} : { htpasswd: drop(provider.htpasswd) ?? {} }),
    ...(provider.ldap === undefined ? {} : { ldap: drop(provider.ldap) ?? {} }),
    ...(provider.openID === undefined ? {} : { openID: drop(provider.openID) ?? {} }),
    ...(provider.requestHeader === undefined ? {} : { requestHeader: drop(provider.requestHeader) ?? {} }),
  };
}
