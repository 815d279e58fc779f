/** What can be done at which path: the part that both OpenAPI versions render. */
import { type Subresource, servedKinds, subresourcesOf } from '../discovery/index.ts';
import type { GroupVersionKind } from '../meta/object.ts';
import type { KindDefinition, Verb } from '../registry/definition.ts';
import { schemaNameOf } from '../schema/index.ts';

export type Method = 'get' | 'put' | 'post' | 'delete' | 'patch';

export interface Operation {
  readonly method: Method;
  /** x-kubernetes-action. */
  readonly action: 'get' | 'list' | 'post' | 'put' | 'patch' | 'delete' | 'deletecollection' | 'connect';
  readonly gvk: GroupVersionKind;
  readonly operationId: string;
  readonly tag: string;
  readonly description: string;
  readonly queryParameters: readonly QueryParameter[];
  /** Of a kind that is defined by a custom resource definition. */
  readonly custom: boolean;
  /** Schema names; undefined: any bytes. */
  readonly body?: string;
  readonly response?: string;
}

export interface PathOperations {
  readonly path: string;
  /** Names of parameters in the path. */
  readonly pathParameters: readonly string[];
  readonly operations: readonly Operation[];
}

export interface QueryParameter {
  readonly name: string;
  readonly type: 'string' | 'boolean' | 'integer';
  readonly description: string;
}

const META = 'io.k8s.apimachinery.pkg.apis.meta.v1';
export const PATCH_TYPE = `${META}.Patch`;
export const DELETE_OPTIONS_TYPE = `${META}.DeleteOptions`;
export const STATUS_TYPE = `${META}.Status`;

/** Media types of patches, which clients look for to know what the server can do. */
const PATCH_MEDIA_TYPES = [
  'application/apply-patch+yaml',
  'application/json-patch+json',
  'application/merge-patch+json',
  'application/strategic-merge-patch+json',
];

/** What an operation takes: custom kinds have no strategic merge patches. */
export function consumedBy(operation: Operation): readonly string[] {
  if (operation.method !== 'patch') return ['*/*'];
  return operation.custom ? PATCH_MEDIA_TYPES.filter((type) => !type.includes('strategic')) : PATCH_MEDIA_TYPES;
}

const parameter = (name: string, type: QueryParameter['type'], description: string): QueryParameter => ({
  name,
  type,
  description,
});
const PRETTY = parameter('pretty', 'string', 'If true, the answer is indented.');
const WRITE_PARAMETERS = [
  PRETTY,
  parameter('dryRun', 'string', 'With All, the change is processed completely but not stored.'),
  parameter('fieldManager', 'string', 'Who makes the change, for the record of field owners.'),
  parameter('fieldValidation', 'string', 'What to do with unknown or duplicate fields: Ignore, Warn or Strict.'),
];
const LIST_PARAMETERS = [
  PRETTY,
  parameter('allowWatchBookmarks', 'boolean', 'Whether a watch may send bookmarks.'),
  parameter('continue', 'string', 'Where the next page of a list starts; from the previous page.'),
  parameter('fieldSelector', 'string', 'A selector by fields: narrows the list of returned objects.'),
  parameter('labelSelector', 'string', 'A selector by labels: narrows the list of returned objects.'),
  parameter('limit', 'integer', 'The most items of one page.'),
  parameter('resourceVersion', 'string', 'The revision to start from.'),
  parameter('resourceVersionMatch', 'string', 'How the revision is to be understood.'),
  parameter('sendInitialEvents', 'boolean', 'Whether a watch starts with the present state.'),
  parameter('timeoutSeconds', 'integer', 'How long a list or watch may take.'),
  parameter('watch', 'boolean', 'Watch for changes to the described resources, in the place of a list.'),
];
const DELETE_PARAMETERS = [
  PRETTY,
  parameter('dryRun', 'string', 'With All, the change is processed completely but not stored.'),
  parameter('gracePeriodSeconds', 'integer', 'How long the object may take to end.'),
  parameter('propagationPolicy', 'string', 'What becomes of dependents: Orphan, Background or Foreground.'),
];
const PATCH_PARAMETERS = [
  ...WRITE_PARAMETERS,
  parameter('force', 'boolean', 'Whether apply takes fields from other owners.'),
];

/** All operations of a group and version, in path order. */
export function operationsOf(
  kinds: readonly KindDefinition[],
  groupVersion: { readonly group: string; readonly version: string },
): PathOperations[] {
  const found: PathOperations[] = [];
  for (const served of servedKinds(kinds)) {
    if (served.group !== groupVersion.group || served.version !== groupVersion.version) continue;
    const { kind } = served;
    const gvk = { group: served.group, version: served.version, kind: kind.kind };
    const root = gvk.group === '' ? `/api/${gvk.version}` : `/apis/${gvk.group}/${gvk.version}`;
    const scope = kind.namespaced ? `${root}/namespaces/{namespace}` : root;
    const scopeParameters = kind.namespaced ? ['namespace'] : [];
    const make = new OperationMaker(kind, gvk);
    if (kind.namespaced && kind.verbs.includes('list')) {
      found.push({ path: `${root}/${kind.plural}`, pathParameters: [], operations: [make.list('ForAllNamespaces')] });
    }
    push(found, `${scope}/${kind.plural}`, scopeParameters, make.collection());
    push(found, `${scope}/${kind.plural}/{name}`, [...scopeParameters, 'name'], make.item());
    for (const sub of subresourcesOf(served)) {
      push(found, `${scope}/${kind.plural}/{name}/${sub.name}`, [...scopeParameters, 'name'], make.subresource(sub));
    }
  }
  return found.sort((a, b) => (a.path < b.path ? -1 : 1));
}

function push(found: PathOperations[], path: string, pathParameters: string[], operations: Operation[]): void {
  if (operations.length > 0) found.push({ path, pathParameters, operations });
}

const CONNECT_KINDS = /Options$/;

class OperationMaker {
  readonly #kind: KindDefinition;
  readonly #gvk: GroupVersionKind;
  readonly #schema: string;
  /** As in upstream's operation ids: `CoreV1NamespacedPod`. */
  readonly #idTail: string;
  readonly #tag: string;

  constructor(kind: KindDefinition, gvk: GroupVersionKind) {
    this.#kind = kind;
    this.#gvk = gvk;
    this.#schema = kind.custom === undefined ? schemaNameOf(gvk) : kind.schemaName;
    const group =
      gvk.group === ''
        ? 'core'
        : gvk.group
            .split('.', kind.custom === undefined ? 1 : undefined)
            .map(wordOf)
            .join('');
    this.#tag = `${group}_${gvk.version}`;
    this.#idTail = `${capital(group)}${capital(gvk.version)}${kind.namespaced ? 'Namespaced' : ''}${kind.kind}`;
  }

  #has(verb: Verb): boolean {
    return this.#kind.verbs.includes(verb);
  }

  #operation(
    method: Method,
    action: Operation['action'],
    idVerb: string,
    description: string,
    queryParameters: readonly QueryParameter[],
    types: { body?: string; response?: string },
    suffix = '',
    gvk = this.#gvk,
  ): Operation {
    return {
      method,
      action,
      gvk,
      operationId: `${idVerb}${this.#idTail}${suffix}`,
      tag: this.#tag,
      description,
      queryParameters,
      custom: this.#kind.custom !== undefined,
      ...types,
    };
  }

  list(suffix = ''): Operation {
    const response = this.#schema.replace(/[^.]+$/, this.#kind.listKind);
    return this.#operation(
      'get',
      'list',
      'list',
      `list or watch objects of kind ${this.#kind.kind}`,
      LIST_PARAMETERS,
      { response },
      suffix,
    );
  }

  collection(): Operation[] {
    const operations: Operation[] = [];
    const { kind } = this.#kind;
    if (this.#has('list')) operations.push(this.list());
    if (this.#has('create')) {
      operations.push(
        this.#operation('post', 'post', 'create', `create a ${kind}`, WRITE_PARAMETERS, {
          body: this.#schema,
          response: this.#schema,
        }),
      );
    }
    if (this.#has('deletecollection')) {
      operations.push(
        this.#operation(
          'delete',
          'deletecollection',
          'deleteCollection',
          `delete a collection of ${kind}`,
          [...DELETE_PARAMETERS, ...LIST_PARAMETERS.filter((each) => each.name.endsWith('Selector'))],
          { body: DELETE_OPTIONS_TYPE, response: STATUS_TYPE },
        ),
      );
    }
    return operations;
  }

  item(): Operation[] {
    const { kind } = this.#kind;
    const operations: Operation[] = [];
    if (this.#has('get')) operations.push(...this.#readWrite(kind, this.#schema, this.#gvk, this.#kind.verbs, ''));
    if (this.#has('delete')) {
      operations.push(
        this.#operation('delete', 'delete', 'delete', `delete a ${kind}`, DELETE_PARAMETERS, {
          body: DELETE_OPTIONS_TYPE,
          response: STATUS_TYPE,
        }),
      );
    }
    return operations;
  }

  subresource(sub: Subresource): Operation[] {
    const suffix = capital(sub.name);
    const gvk = { group: sub.group, version: sub.version, kind: sub.kind };
    if (CONNECT_KINDS.test(sub.kind)) {
      const methods: Readonly<Record<string, Method>> = {
        create: 'post',
        delete: 'delete',
        get: 'get',
        patch: 'patch',
        update: 'put',
      };
      return sub.verbs.flatMap((verb) => {
        const method = methods[verb];
        return method === undefined
          ? []
          : [
              this.#operation(
                method,
                'connect',
                `connect${capital(method)}`,
                `connect ${method.toUpperCase()} requests to ${sub.name} of ${this.#kind.kind}`,
                [],
                {},
                suffix,
                gvk,
              ),
            ];
      });
    }
    const isItself = this.#kind.custom !== undefined && sub.kind === this.#kind.kind;
    const schema = isItself ? this.#schema : schemaNameOf(gvk);
    if (sub.verbs.includes('create')) {
      return [
        this.#operation(
          'post',
          'post',
          'create',
          `create ${sub.name} of a ${this.#kind.kind}`,
          WRITE_PARAMETERS,
          { body: schema, response: schema },
          suffix,
          gvk,
        ),
      ];
    }
    return this.#readWrite(
      `${sub.name} of the ${this.#kind.kind}`,
      sub.name === 'log' ? undefined : schema,
      gvk,
      sub.verbs,
      suffix,
    );
  }

  #readWrite(
    what: string,
    schema: string | undefined,
    gvk: GroupVersionKind,
    verbs: readonly string[],
    suffix: string,
  ): Operation[] {
    const response = schema === undefined ? {} : { response: schema };
    const operations: Operation[] = [];
    if (verbs.includes('get')) {
      operations.push(this.#operation('get', 'get', 'read', `read the ${what}`, [PRETTY], response, suffix, gvk));
    }
    if (schema !== undefined && verbs.includes('update')) {
      operations.push(
        this.#operation(
          'put',
          'put',
          'replace',
          `replace the ${what}`,
          WRITE_PARAMETERS,
          { body: schema, response: schema },
          suffix,
          gvk,
        ),
      );
    }
    if (schema !== undefined && verbs.includes('patch')) {
      operations.push(
        this.#operation(
          'patch',
          'patch',
          'patch',
          `change the ${what} in part`,
          PATCH_PARAMETERS,
          { body: PATCH_TYPE, response: schema },
          suffix,
          gvk,
        ),
      );
    }
    return operations;
  }
}

/** `stable.example.com` is `stableExampleCom` where names are run together. */
function wordOf(part: string, index: number): string {
  return index === 0 ? part : capital(part);
}

function capital(text: string): string {
  return text.charAt(0).toUpperCase() + text.slice(1);
}
