/**
 * `apply --prune --applyset=KIND/NAME`. An object, the parent, records which kinds and namespaces contain the members
 * of a set. Members that no file contains are deleted. Source: KEP-3659, k8s.io/kubectl/pkg/cmd/apply/applyset.go.
 */
import { isApiError } from '../../../api/meta/status.ts';
import { printable } from '../../../base/text/printable.ts';
import { ClientError } from '../../core/errors.ts';
import type { AnyObject } from '../../core/objects.ts';
import { groupResource, pathOf, type ResourceInfo } from '../../core/resources.ts';
import type { Manifest } from '../../manifests.ts';
import { dryRunOf, validationOf } from '../../printing.ts';
import { errorLine } from '../../run.ts';
import type { Session } from '../../session.ts';
import { CLIENT_VERSION } from '../cluster/discovery.ts';
import {
  ADDITIONAL_NAMESPACES,
  type ApplySetParent,
  type ApplySetScope,
  applySetId,
  DEPRECATED_RESOURCES,
  EMPTY_SCOPE,
  groupKind,
  ID_LABEL,
  KINDS,
  MEMBER_LABEL,
  PARENT_TYPE_LABEL,
  parentName,
  parentPatch,
  recordedResources,
  scopeOf,
  TOOLING,
  unionOf,
} from './apply-set-record.ts';
import { readIfPresent } from './client-side-apply.ts';
import { deletePruned } from './prune.ts';

/** Tool in the parent's annotation. The name is kubectl's, so that both clients can apply the same set. */
const TOOL = 'kubectl';
const MANAGER = `${TOOL}-applyset`;
const BUILT_IN_PARENTS: readonly string[] = ['configmaps', 'secrets'];

export class ApplySet {
  readonly #session: Session;
  readonly #parent: ApplySetParent;
  #recorded: readonly ResourceInfo[] = [];
  #current = EMPTY_SCOPE;
  #updated = EMPTY_SCOPE;

  private constructor(session: Session, parent: ApplySetParent) {
    this.#session = session;
    this.#parent = parent;
  }

  /**
   * The set of `--applyset`; undefined without the flag. Throws ClientError for flags that cannot be combined with it.
   */
  static async of(session: Session): Promise<ApplySet | undefined> {
    const { flags } = session.context;
    const text = flags.text('applyset');
    if (text === '') return undefined;
    const parent = await parentOf(session, text);
    if (!flags.bool('prune')) throw new ClientError('--applyset requires --prune');
    await checkParent(session, parent);
    for (const flag of ['all', 'selector', 'prune-allowlist'])
      if (flag === 'all' ? flags.bool(flag) : flags.text(flag) !== '')
        throw new ClientError(`--${flag} is incompatible with --applyset`);
    return new ApplySet(session, parent);
  }

  /** The manifests with the label of members. Throws ClientError if a manifest already has such a label. */
  labelled(manifests: readonly Manifest[]): Manifest[] {
    return manifests.map(({ object, source }) => {
      const { labels = {} } = object.metadata ?? {};
      if (MEMBER_LABEL in labels) throw new ClientError(`ApplySet label "${MEMBER_LABEL}" already set in input data`);
      const metadata = { ...object.metadata, labels: { ...labels, [MEMBER_LABEL]: applySetId(this.#parent) } };
      return { source, object: { ...object, metadata } };
    });
  }

  /**
   * Adds the kinds and namespaces of the manifests to the recorded ones. After an interrupted apply, the next apply
   * then finds all members.
   */
  async begin(manifests: readonly Manifest[]): Promise<void> {
    await this.#read();
    const placed = await Promise.all(
      // Errors are ignored here, because the apply of the object reports them.
      manifests.map(({ object }) => this.#session.place(object).catch(() => undefined)),
    );
    this.#updated = scopeOf(placed.filter((each) => each !== undefined));
    await this.#record(unionOf(this.#current, this.#updated));
  }

  /** Deletes members that were not applied, and reduces the record to the kinds and namespaces of the manifests. */
  async finish(applied: readonly AnyObject[]): Promise<void> {
    const kept = new Set(applied.map(({ metadata }) => metadata?.uid));
    for (const resource of this.#recorded)
      for (const object of await this.#members(resource))
        if (!kept.has(object.metadata?.uid)) {
          const { namespace, name } = object.metadata ?? {};
          const place = namespace === undefined ? name : `${namespace}/${name}`;
          await inContext(`pruning ${groupKind(resource)} ${place}`, deletePruned(this.#session, resource, object));
        }
    await inContext('apply and prune succeeded, but ApplySet update failed', this.#record(this.#updated));
  }

  async #members(resource: ResourceInfo): Promise<AnyObject[]> {
    const labelSelector = `${MEMBER_LABEL}=${applySetId(this.#parent)}`;
    const { group, version, kind } = resource;
    const found: AnyObject[] = [];
    for (const namespace of resource.namespaced ? [...this.#current.namespaces].sort() : [undefined])
      found.push(
        ...(await inContext(
          `listing ${group}/${version}, Kind=${kind} for pruning`,
          this.#session.list(resource, namespace, { labelSelector }),
        )),
      );
    return found;
  }

  async #read(): Promise<void> {
    const { resource, namespace, name } = this.#parent;
    const shown = JSON.stringify(parentName(this.#parent));
    const object = await inContext(
      `failed to fetch ApplySet parent object ${shown}`,
      readIfPresent(this.#session, pathOf(resource, namespace, name)),
    );
    if (object === undefined) {
      if (!isBuiltIn(resource))
        throw new ClientError('custom resource ApplySet parents cannot be created automatically');
      return;
    }
    const { labels = {}, annotations = {} } = object.metadata ?? {};
    const tooling = annotations[TOOLING];
    if (tooling === undefined)
      throw new ClientError(
        `ApplySet parent object ${shown} already exists and is missing required annotation "${TOOLING}"`,
      );
    const tool = tooling.includes('/') ? tooling.slice(0, tooling.lastIndexOf('/')) : tooling;
    if (tool !== TOOL)
      throw new ClientError(
        `ApplySet parent object ${shown} already exists and is managed by tooling ${JSON.stringify(tool)} instead of "${TOOL}"`,
      );
    const [id, own] = [labels[ID_LABEL], applySetId(this.#parent)];
    if (id === undefined)
      throw new ClientError(`ApplySet parent object ${shown} exists and does not have required label ${ID_LABEL}`);
    if (id !== own)
      throw new ClientError(
        `ApplySet parent object ${shown} exists and has incorrect value for label "${ID_LABEL}" (got: ${id}, want: ${own})`,
      );
    this.#recorded = await this.#resourcesIn(annotations);
    const others = (annotations[ADDITIONAL_NAMESPACES] ?? '').split(',').filter((each) => each !== '');
    this.#current = {
      kinds: new Set(this.#recorded.map(groupKind)),
      namespaces: new Set(namespace === undefined ? others : [namespace, ...others]),
    };
  }

  async #resourcesIn(annotations: Readonly<Record<string, string>>): Promise<readonly ResourceInfo[]> {
    const when = `parsing ApplySet annotation on ${JSON.stringify(parentName(this.#parent))}`;
    const find = (all: readonly ResourceInfo[]): ResourceInfo[] | undefined =>
      recordedResources(annotations, all, (annotation, text) => {
        throw new ClientError(
          annotation === DEPRECATED_RESOURCES
            ? `${when}: invalid group resource in "${annotation}" annotation: no matches for ${text}`
            : `${when}: could not find mapping for kind in "${KINDS}" annotation: no matches for ${kindInMessage(text)}`,
        );
      });
    let found: ResourceInfo[] | undefined;
    try {
      found = find((await this.#session.resources()).all);
    } catch {
      // The kind may be newer than the cached discovery, so it is searched again after a refresh.
      found = find((await this.#session.refreshed()).all);
    }
    if (found !== undefined) return found;
    throw new ClientError(
      `${when}: kubectl requires the "${KINDS}" annotation to be set on all ApplySet parent objects`,
    );
  }

  async #record(scope: ApplySetScope): Promise<void> {
    const { flags, io } = this.#session.context;
    const mode = dryRunOf(flags);
    if (mode === 'client') return;
    const { resource, namespace, name } = this.#parent;
    const send = (force: boolean): Promise<AnyObject> =>
      this.#session.send('PATCH', pathOf(resource, namespace, name), {
        query: {
          fieldManager: MANAGER,
          dryRun: mode === 'server' ? 'All' : undefined,
          fieldValidation: validationOf(flags.text('validate')),
          force,
        },
        body: parentPatch(this.#parent, scope, `${TOOL}/${CLIENT_VERSION}`),
        contentType: 'application/apply-patch+yaml',
      });
    const recorded = send(false).catch((error: unknown) => {
      if (!isApiError(error, 'Conflict')) throw error;
      io.err(
        `Warning: failed to update ApplySet: ${printable(error.message)}\nApplySet field manager ${MANAGER} should own these fields. Retrying with conflicts forced.\n`,
      );
      return send(true);
    });
    await inContext('failed to update ApplySet', recorded);
  }
}

const kindInMessage = (text: string): string => {
  const at = text.indexOf('.');
  return at < 0 ? `kind "${text}" in group ""` : `kind "${text.slice(0, at)}" in group "${text.slice(at + 1)}"`;
};

const isBuiltIn = ({ group, version, name }: ResourceInfo): boolean =>
  group === '' && version === 'v1' && BUILT_IN_PARENTS.includes(name);

/** The object of `[RESOURCE][.GROUP]/NAME`; a Secret if no resource is given. Its namespace is that of `-n`. */
async function parentOf(session: Session, text: string): Promise<ApplySetParent> {
  const at = text.indexOf('/');
  const name = text.slice(at + 1);
  if (name === '') throw new ClientError(`invalid parent reference ${JSON.stringify(text)}: name cannot be blank`);
  const type = at < 0 ? 'secrets' : text.slice(0, at);
  const resource = (await session.resources()).find(type) ?? (await session.refreshed()).find(type);
  if (resource === undefined) {
    const [, resourceName = '', group = ''] = /^([^.]*)\.?(.*)$/.exec(type) ?? [];
    throw new ClientError(
      `invalid parent reference ${JSON.stringify(text)}: no matches for ${group}/, Resource=${resourceName}`,
    );
  }
  const { namespaceGiven, namespace } = session.connection;
  return { resource, name, namespace: resource.namespaced && namespaceGiven ? namespace : undefined };
}

async function checkParent(session: Session, { resource, namespace }: ApplySetParent): Promise<void> {
  const errors: string[] = [];
  if (resource.namespaced && namespace === undefined)
    errors.push('namespace is required to use namespace-scoped ApplySet');
  if (!isBuiltIn(resource)) {
    const definitions = await session.resource('customresourcedefinitions.apiextensions.k8s.io');
    const permitted = await session.list(definitions, undefined, { labelSelector: PARENT_TYPE_LABEL });
    if (!permitted.some(({ metadata }) => metadata?.name === groupResource(resource)))
      errors.push(
        `resource "${resource.group}/${resource.version}, Resource=${resource.name}" is not permitted as an ApplySet parent`,
      );
  }
  if (errors.length > 0) throw new ClientError(errors.join('\n'), { isPlain: errors.length > 1 });
}

/** Prefixes the message of an error with `when`. */
async function inContext<T>(when: string, result: Promise<T>): Promise<T> {
  try {
    return await result;
  } catch (error) {
    const text = errorLine(error).replace(/^error: /, '');
    throw new ClientError(`${when}: ${text}`);
  }
}
