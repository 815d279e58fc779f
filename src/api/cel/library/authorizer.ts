/** Authorization checks in expressions. Source: k8s.io/apiserver/pkg/cel/library/authz.go. */
import { dns1123LabelErrors, dns1123SubdomainErrors } from '../../../base/names.ts';
import { declareFunction, type Overload, perCharacter } from '../functions.ts';
import { parseType } from '../types.ts';
import { EvaluationError, Opaque } from '../values.ts';

const PACKAGE = 'kubernetes.authorization';
const AUTHORIZER = `${PACKAGE}.Authorizer`;
const PATH = `${PACKAGE}.PathCheck`;
const GROUP = `${PACKAGE}.GroupCheck`;
const RESOURCE = `${PACKAGE}.ResourceCheck`;
const DECISION = `${PACKAGE}.Decision`;

/** An authorization check. `account`: the service account whose access is checked instead of the requesting user's. */
export interface AccessRequest {
  readonly account?: { readonly namespace: string; readonly name: string };
  readonly verb: string;
  /** Path of a non-resource check. The other fields are for resource checks. */
  readonly path?: string;
  readonly group?: string;
  readonly resource?: string;
  readonly subresource?: string;
  readonly namespace?: string;
  readonly name?: string;
  readonly fieldSelector?: string;
  readonly labelSelector?: string;
}

export interface AccessAnswer {
  readonly allowed: boolean;
  readonly reason: string;
  /** Error that prevented a decision; empty if there is a decision. */
  readonly error: string;
}

/**
 * Performs an authorization check. If the decision is still pending, it throws an error that is not an EvaluationError,
 * so that `&&` and `||` do not absorb the error.
 */
export type AccessChecker = (question: AccessRequest) => AccessAnswer;

interface AuthorizerState {
  readonly checkAccess: AccessChecker;
  readonly question: Omit<AccessRequest, 'verb'>;
}

export const AUTHORIZER_TYPE = parseType(AUTHORIZER);
export const RESOURCE_CHECK_TYPE = parseType(RESOURCE);

let serial = 0;
/** Creates an opaque value with a unique key, so that two values are never equal. */
const opaque = (type: string, value: unknown): Opaque => new Opaque(type, value, String(++serial));
const of = (value: Opaque): AuthorizerState => value.value as AuthorizerState;

export const authorizerValue = (checkAccess: AccessChecker): Opaque =>
  opaque(AUTHORIZER, { checkAccess, question: {} });

export const resourceCheckValue = (checkAccess: AccessChecker, question: Omit<AccessRequest, 'verb'>): Opaque =>
  opaque(RESOURCE, { checkAccess, question });

const adding = (type: string, value: Opaque, more: Omit<AccessRequest, 'verb'>): Opaque => {
  const { checkAccess, question } = of(value);
  return opaque(type, { checkAccess, question: { ...question, ...more } });
};

function accountOf(authorizer: Opaque, namespace: string, name: string): Opaque {
  const wrong = [
    ...dns1123SubdomainErrors(name).map((problem) => `Invalid service account name: ${problem}`),
    ...dns1123LabelErrors(namespace).map((problem) => `Invalid service account namespace: ${problem}`),
  ];
  if (wrong.length > 0) throw new EvaluationError(wrong.join(', '));
  return adding(AUTHORIZER, authorizer, { account: { namespace, name } });
}

function pathOf(authorizer: Opaque, path: string): Opaque {
  if (path === '') throw new EvaluationError('path must not be empty');
  return adding(PATH, authorizer, { path });
}

/** Cost of an authorization check, as in upstream. The cost limit of an expression permits two checks. */
const CHECK_COST = 350_000;
const checks = { cost: (): number => CHECK_COST - 1, size: (): number => 1 };

function decide(value: Opaque, verb: string): Opaque {
  const { checkAccess, question } = of(value);
  return opaque(DECISION, checkAccess({ ...question, verb }));
}

const answerOf = (value: Opaque): AccessAnswer => value.value as AccessAnswer;
const narrowing = (name: 'subresource' | 'namespace' | 'name'): Overload =>
  declareFunction(`${RESOURCE}.${name}(string): ${RESOURCE}`, (value: Opaque, text: string) =>
    adding(RESOURCE, value, { [name]: text }),
  );
const selecting = (name: 'fieldSelector' | 'labelSelector'): Overload =>
  declareFunction(
    `${RESOURCE}.${name}(string): ${RESOURCE}`,
    (value: Opaque, text: string) => adding(RESOURCE, value, { [name]: text }),
    { cost: ([, text = 0]) => perCharacter(text) },
  );

export const authorizers: readonly Overload[] = [
  declareFunction(`${AUTHORIZER}.path(string): ${PATH}`, pathOf),
  declareFunction(`${AUTHORIZER}.group(string): ${GROUP}`, (value: Opaque, group: string) =>
    adding(GROUP, value, { group }),
  ),
  declareFunction(`${AUTHORIZER}.serviceAccount(string, string): ${AUTHORIZER}`, accountOf),
  declareFunction(`${GROUP}.resource(string): ${RESOURCE}`, (value: Opaque, resource: string) =>
    adding(RESOURCE, value, { resource }),
  ),
  narrowing('subresource'),
  narrowing('namespace'),
  narrowing('name'),
  selecting('fieldSelector'),
  selecting('labelSelector'),
  declareFunction(`${PATH}.check(string): ${DECISION}`, decide, checks),
  declareFunction(`${RESOURCE}.check(string): ${DECISION}`, decide, checks),
  declareFunction(`${DECISION}.allowed(): bool`, (value: Opaque) => answerOf(value).allowed),
  declareFunction(`${DECISION}.reason(): string`, (value: Opaque) => answerOf(value).reason, { size: () => 1024 }),
  declareFunction(`${DECISION}.errored(): bool`, (value: Opaque) => answerOf(value).error !== ''),
  declareFunction(`${DECISION}.error(): string`, (value: Opaque) => answerOf(value).error, { size: () => 1024 }),
];
