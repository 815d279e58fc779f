/** Operations by path, independent of the OpenAPI version. */
import { type Subresource, servedKinds, subresourcesOf } from '../discovery/index.ts';
import type { GroupVersionKind } from '../meta/object.ts';
import type { KindDefinition, Verb } from '../registry/definition.ts';
import { schemaNameOf } from '../schema/index.ts';
import {
  byName,
  CHOICE_PARAMETERS,
  CONNECT_PARAMETERS,
  DELETE_PARAMETERS,
  inPath,
  LIST_PARAMETERS,
  LOG_PARAMETERS,
  PATCH_PARAMETERS,
  type Parameter,
  PRETTY,
  WRITE_PARAMETERS,
} from './parameters.ts';

export type Method = 'get' | 'put' | 'post' | 'delete' | 'options' | 'head' | 'patch';

export interface Operation {
  readonly method: Method;
  readonly operationId: string;
  readonly tag: string;
  readonly description: string;
  /** Query parameters of this operation. Parameters that all operations of a path share belong to the path. */
  readonly parameters: readonly Parameter[];
  readonly consumes: readonly string[];
  readonly produces: readonly string[];
  readonly body?: { readonly schema: string; readonly required: boolean };
  readonly responses: readonly Response[];
  /** Action and kind of the operation. Undefined if the operation does not concern a kind. */
  readonly about?: { readonly action: Action; readonly gvk: GroupVersionKind };
}

/** Values of x-kubernetes-action. */
type Action =
  | 'get'
  | 'list'
  | 'watch'
  | 'watchlist'
  | 'post'
  | 'put'
  | 'patch'
  | 'delete'
  | 'deletecollection'
  | 'connect';

interface Response {
  readonly code: 200 | 201 | 202;
  /** Name of a schema, or `TEXT`. */
  readonly schema: string;
}

export const REASONS: Readonly<Record<Response['code'], string>> = { 200: 'OK', 201: 'Created', 202: 'Accepted' };

export interface PathOperations {
  readonly path: string;
  readonly parameters: readonly Parameter[];
  readonly operations: readonly Operation[];
}

export const META_PACKAGE = 'io.k8s.apimachinery.pkg.apis.meta.v1';
export const PATCH_TYPE = `${META_PACKAGE}.Patch`;
export const DELETE_OPTIONS_TYPE = `${META_PACKAGE}.DeleteOptions`;
export const STATUS_TYPE = `${META_PACKAGE}.Status`;
const WATCH_EVENT_TYPE = `${META_PACKAGE}.WatchEvent`;
/** Marks a plain-text response. */
export const TEXT = 'string';

const JSON_AND_YAML = ['application/json', 'application/yaml'];
export const ALL_FORMS = [...JSON_AND_YAML, 'application/vnd.kubernetes.protobuf'];
const WATCHED_FORMS = [
  ...ALL_FORMS,
  'application/json;stream=watch',
  'application/vnd.kubernetes.protobuf;stream=watch',
];
const ANY_FORM = ['*/*'];
/** Media types of patches. Clients use them to detect what the server supports. */
const PATCH_FORMS = [
  'application/json-patch+json',
  'application/merge-patch+json',
  'application/strategic-merge-patch+json',
  'application/apply-patch+yaml',
];

/** Names of all schemas that the operations use. */
export function schemasOf(paths: readonly PathOperations[]): Set<string> {
  const found = new Set<string>();
  for (const { operations } of paths) {
    for (const { body, responses } of operations) {
      if (body !== undefined) found.add(body.schema);
      for (const { schema } of responses) if (schema !== TEXT) found.add(schema);
    }
  }
  return found;
}

/** All operations of a group and version, sorted by path. */
export function operationsOf(
  kinds: readonly KindDefinition[],
  groupVersion: { readonly group: string; readonly version: string },
): PathOperations[] {
  const found: PathOperations[] = [];
  for (const served of servedKinds(kinds)) {
    if (served.group !== groupVersion.group || served.version !== groupVersion.version) continue;
    const kind = describable(served.kind);
    const gvk = { group: served.group, version: served.version, kind: kind.kind };
    const root = gvk.group === '' ? `/api/${gvk.version}` : `/apis/${gvk.group}/${gvk.version}`;
    const tail = kind.namespaced ? `/namespaces/{namespace}/${kind.plural}` : `/${kind.plural}`;
    const make = new OperationMaker(kind, gvk);
    if (kind.namespaced && kind.verbs.includes('list')) push(found, `${root}/${kind.plural}`, [make.listAll()]);
    push(found, `${root}${tail}`, make.collection());
    push(found, `${root}${tail}/{name}`, make.item(), kind.kind);
    for (const sub of subresourcesOf(served)) {
      const path = `${root}${tail}/{name}/${sub.name}`;
      push(found, path, make.subresource(sub), sub.kind);
      if (sub.name === 'proxy') push(found, `${path}/{path}`, make.subresource(sub, 'WithPath'), sub.kind);
    }
    // As upstream, watch paths of custom resources exist but are not published.
    if (kind.custom !== undefined || !kind.verbs.includes('watch')) continue;
    if (kind.namespaced) push(found, `${root}/watch/${kind.plural}`, [make.watchAll()]);
    push(found, `${root}/watch${tail}`, [make.watchList()]);
    push(found, `${root}/watch${tail}/{name}`, [make.watch()], kind.kind);
  }
  return found.sort((a, b) => (a.path < b.path ? -1 : 1));
}

/**
 * Returns a computed kind with only the verb create, because a response to its list is not a list of the kind's
 * objects.
 */
function describable(kind: KindDefinition): KindDefinition {
  return kind.isComputed === true && kind.verbs.includes('create')
    ? { ...kind, verbs: kind.verbs.filter((verb) => verb === 'create') }
    : kind;
}

/**
 * Adds a path. Parameters that all operations share become parameters of the path. `kind`: kind of the object that
 * `{name}` identifies.
 */
function push(found: PathOperations[], path: string, operations: readonly Operation[], kind = ''): void {
  const [first, ...others] = operations;
  if (first === undefined) return;
  const shared = first.parameters.filter((each) => others.every(({ parameters }) => parameters.includes(each)));
  const descriptions: Readonly<Record<string, string>> = {
    name: `name of the ${kind}`,
    namespace: 'the namespace of the object',
    path: 'path to the resource',
  };
  const own = [...path.matchAll(/\{(\w+)\}/g)].map(([, name = '']) => inPath(name, descriptions[name] ?? ''));
  found.push({
    path,
    parameters: byName([...own, ...shared]),
    operations: operations.map((each) => ({
      ...each,
      parameters: byName(each.parameters.filter((parameter) => !shared.includes(parameter))),
    })),
  });
}

const CONNECT_KINDS = /Options$/;
const CONNECT_METHODS: Readonly<Record<string, readonly Method[]>> = {
  create: ['post'],
  delete: ['delete'],
  get: ['get', 'options', 'head'],
  patch: ['patch'],
  update: ['put'],
};

interface Forms {
  readonly body?: Operation['body'];
  readonly consumes?: readonly string[];
  readonly produces?: readonly string[];
  readonly responses: readonly Response[];
}

interface Naming {
  /** Start of the operation ID. */
  readonly verb: string;
  /** Part of the operation ID after group and version: `Collection`, or the method of a connection. */
  readonly infix?: string;
  readonly suffix?: string;
  /** Whether the operation ID contains `Namespaced` for namespaced kinds. */
  readonly scoped?: boolean;
}

class OperationMaker {
  readonly #kind: KindDefinition;
  readonly #gvk: GroupVersionKind;
  readonly #schema: string;
  readonly #custom: boolean;
  readonly #group: string;

  constructor(kind: KindDefinition, gvk: GroupVersionKind) {
    this.#kind = kind;
    this.#gvk = gvk;
    this.#custom = kind.custom !== undefined;
    this.#schema = this.#custom ? kind.schemaName : schemaNameOf(gvk);
    this.#group = operationGroup(gvk.group);
  }

  /** Name in the operation ID. If two resources have the same kind, the computed one uses its resource name. */
  get #named(): string {
    const { kind, singular, isComputed } = this.#kind;
    return isComputed === true && singular !== kind.toLowerCase() ? capital(singular) : kind;
  }

  #has(verb: Verb): boolean {
    return this.#kind.verbs.includes(verb);
  }

  #operation(
    method: Method,
    action: Action,
    { verb, infix = '', suffix = '', scoped = true }: Naming,
    description: string,
    parameters: readonly Parameter[],
    forms: Forms,
    gvk = this.#gvk,
  ): Operation {
    const { version } = this.#gvk;
    const scope = scoped && this.#kind.namespaced ? 'Namespaced' : '';
    return {
      method,
      operationId: `${verb}${capital(this.#group)}${capital(version)}${infix}${scope}${this.#named}${suffix}`,
      tag: `${this.#group}_${version}`,
      description,
      parameters,
      consumes: forms.consumes ?? (this.#custom ? JSON_AND_YAML : ANY_FORM),
      produces: forms.produces ?? (this.#custom ? JSON_AND_YAML : ALL_FORMS),
      ...(forms.body === undefined ? {} : { body: forms.body }),
      responses: forms.responses,
      about: { action, gvk },
    };
  }

  #list(naming: Omit<Naming, 'verb'>): Operation {
    const schema = this.#schema.replace(/[^.]+$/, this.#kind.listKind);
    return this.#operation(
      'get',
      'list',
      { verb: 'list', ...naming },
      `list or watch objects of kind ${this.#kind.kind}`,
      [PRETTY, ...LIST_PARAMETERS],
      { responses: answers(schema, 200), ...(this.#custom ? {} : { produces: WATCHED_FORMS }) },
    );
  }

  listAll(): Operation {
    return this.#list({ suffix: 'ForAllNamespaces', scoped: false });
  }

  #watching(action: 'watch' | 'watchlist', naming: Omit<Naming, 'verb'>): Operation {
    return this.#operation(
      'get',
      action,
      { verb: 'watch', ...naming },
      `watch ${action === 'watch' ? 'one' : 'all'} ${this.#kind.kind}; deprecated: list with the parameter watch instead`,
      [PRETTY, ...LIST_PARAMETERS],
      { responses: answers(WATCH_EVENT_TYPE, 200), produces: WATCHED_FORMS },
    );
  }

  watchAll(): Operation {
    return this.#watching('watchlist', { suffix: 'ListForAllNamespaces', scoped: false });
  }

  watchList(): Operation {
    return this.#watching('watchlist', { suffix: 'List' });
  }

  watch(): Operation {
    return this.#watching('watch', {});
  }

  collection(): Operation[] {
    const operations: Operation[] = [];
    const { kind } = this.#kind;
    if (this.#has('list')) operations.push(this.#list({}));
    if (this.#has('create')) operations.push(this.#create(`create a ${kind}`, this.#schema, this.#gvk, ''));
    if (this.#has('deletecollection')) operations.push(this.#deleteCollection());
    return operations;
  }

  #create(description: string, schema: string, gvk: GroupVersionKind, suffix: string): Operation {
    return this.#operation(
      'post',
      'post',
      { verb: 'create', suffix },
      description,
      [PRETTY, ...WRITE_PARAMETERS],
      { body: { schema, required: true }, responses: answers(schema, 200, 201, 202) },
      gvk,
    );
  }

  #deleteCollection(): Operation {
    const description = `delete a collection of ${this.#kind.kind}`;
    const naming = { verb: 'delete', infix: 'Collection' };
    const responses = answers(STATUS_TYPE, 200);
    return this.#custom
      ? this.#operation('delete', 'deletecollection', naming, description, [PRETTY, ...LIST_PARAMETERS], { responses })
      : this.#operation(
          'delete',
          'deletecollection',
          naming,
          description,
          [PRETTY, ...DELETE_PARAMETERS, ...CHOICE_PARAMETERS],
          { responses, body: { schema: DELETE_OPTIONS_TYPE, required: false } },
        );
  }

  item(): Operation[] {
    const { kind } = this.#kind;
    const operations: Operation[] = [];
    if (this.#has('get')) operations.push(...this.#readWrite(kind, this.#schema, this.#gvk, this.#kind.verbs, ''));
    if (this.#has('delete')) {
      const schema = this.#kind.returnsDeleted === true ? this.#schema : STATUS_TYPE;
      operations.push(
        this.#operation('delete', 'delete', { verb: 'delete' }, `delete a ${kind}`, [PRETTY, ...DELETE_PARAMETERS], {
          body: { schema: DELETE_OPTIONS_TYPE, required: false },
          responses: answers(schema, 200, 202),
        }),
      );
    }
    return operations;
  }

  /** Operations of a subresource. `ending`: suffix of the operation IDs. */
  subresource(sub: Subresource, ending = ''): Operation[] {
    const suffix = `${capital(sub.name)}${ending}`;
    const gvk = { group: sub.group, version: sub.version, kind: sub.kind };
    if (CONNECT_KINDS.test(sub.kind)) return this.#connections(sub, suffix, gvk);
    const what = `${sub.name} of the ${this.#kind.kind}`;
    if (sub.name === 'log') {
      return [
        this.#operation('get', 'get', { verb: 'read', suffix }, `read the ${what}`, [PRETTY, ...LOG_PARAMETERS], {
          produces: ['text/plain', ...ALL_FORMS],
          responses: answers(TEXT, 200),
        }),
      ];
    }
    const isItself = this.#custom && sub.kind === this.#kind.kind;
    const schema = isItself ? this.#schema : schemaNameOf(gvk);
    return sub.verbs.includes('create')
      ? [this.#create(`create the ${what}`, schema, gvk, suffix)]
      : this.#readWrite(what, schema, gvk, sub.verbs, suffix);
  }

  /** Operations that open a stream, with GET and POST, or that proxy a request, with any method. */
  #connections(sub: Subresource, suffix: string, gvk: GroupVersionKind): Operation[] {
    const methods = sub.verbs.flatMap((verb) => CONNECT_METHODS[verb] ?? []);
    const supported = sub.name === 'proxy' ? methods : methods.filter((each) => each === 'get' || each === 'post');
    return supported.map((method) =>
      this.#operation(
        method,
        'connect',
        { verb: 'connect', infix: capital(method), suffix },
        `connect ${method.toUpperCase()} requests to ${sub.name} of ${this.#kind.kind}`,
        CONNECT_PARAMETERS[sub.name] ?? [],
        { consumes: ANY_FORM, produces: ANY_FORM, responses: answers(TEXT, 200) },
        gvk,
      ),
    );
  }

  #readWrite(
    what: string,
    schema: string,
    gvk: GroupVersionKind,
    verbs: readonly string[],
    suffix: string,
  ): Operation[] {
    const operations: Operation[] = [];
    if (verbs.includes('get')) {
      const responses = answers(schema, 200);
      operations.push(
        this.#operation('get', 'get', { verb: 'read', suffix }, `read the ${what}`, [PRETTY], { responses }, gvk),
      );
    }
    if (verbs.includes('update')) {
      operations.push(
        this.#operation(
          'put',
          'put',
          { verb: 'replace', suffix },
          `replace the ${what}`,
          [PRETTY, ...WRITE_PARAMETERS],
          { body: { schema, required: true }, responses: answers(schema, 200, 201) },
          gvk,
        ),
      );
    }
    if (verbs.includes('patch')) {
      operations.push(
        this.#operation(
          'patch',
          'patch',
          { verb: 'patch', suffix },
          `change the ${what} in part`,
          [PRETTY, ...PATCH_PARAMETERS],
          {
            body: { schema: PATCH_TYPE, required: true },
            // Custom resources do not support strategic merge patches.
            consumes: this.#custom ? PATCH_FORMS.filter((type) => !type.includes('strategic')) : PATCH_FORMS,
            responses: this.#custom ? answers(schema, 200) : answers(schema, 200, 201),
          },
          gvk,
        ),
      );
    }
    return operations;
  }
}

const answers = (schema: string, ...codes: readonly Response['code'][]): Response[] =>
  codes.map((code) => ({ code, schema }));

/**
 * Group name in operation IDs and tags: `rbacAuthorization` for rbac.authorization.k8s.io, `stableExampleCom` for
 * stable.example.com.
 */
export function operationGroup(group: string): string {
  const [first = '', ...others] = group.replace(/\.k8s\.io$/, '').split('.');
  return group === '' ? 'core' : `${first}${others.map(capital).join('')}`;
}

export function capital(text: string): string {
  return text.charAt(0).toUpperCase() + text.slice(1);
}
