/**
 * Maps the claims of a verified token to a user: claim mappings, expressions and validation rules.
 * Source: k8s.io/apiserver/plugin/pkg/authenticator/token/oidc, k8s.io/apiserver/pkg/authentication/cel, KEP-3331.
 */

import { Budget, type Program } from '../../api/cel/compiled-expression.ts';
import { ANY_READER, fromJson } from '../../api/cel/documents.ts';
import { toJson } from '../../api/cel/json.ts';
import { compile } from '../../api/cel/language/compile.ts';
import { standardFunctions } from '../../api/cel/library/index.ts';
import { DYN, formatType, listOf, mapOf, STRING, structureOf, type Type } from '../../api/cel/types.ts';
import type { JsonValue } from '../../api/meta/object.ts';
import type { UserInfo } from '../../api/registry/definition.ts';
import { messageOf } from '../../base/errors.ts';

/** A claim that becomes part of the user, and the prefix for its value. */
export interface ClaimMapping {
  readonly claim: string;
  readonly prefix: string;
}

export interface ClaimExpression {
  readonly source: string;
  readonly program: Program;
}

interface Rule {
  readonly expression: ClaimExpression;
  /** Reason for the rejection, for the log. */
  readonly message: string;
}

export interface ClaimRules {
  readonly username: ClaimMapping | ClaimExpression;
  readonly groups?: ClaimMapping | ClaimExpression;
  readonly uid?: { readonly claim: string } | ClaimExpression;
  readonly extra?: readonly { readonly key: string; readonly value: ClaimExpression }[];
  readonly requiredClaims: ReadonlyMap<string, string>;
  /** Rules for the claims and for the resulting user. */
  readonly claimRules?: readonly Rule[];
  readonly userRules?: readonly Rule[];
}

/** Upstream's cost limits of one expression and of all expressions for one token. */
const MAX_CALL_COST = 1_000_000;
const MAX_COST = 10_000_000;

const CLAIMS: ReadonlyMap<string, Type> = new Map([['claims', mapOf(STRING, DYN)]]);
const USER: ReadonlyMap<string, Type> = new Map([
  [
    'user',
    structureOf('kubernetes.UserInfo', {
      username: STRING,
      uid: STRING,
      groups: listOf(STRING),
      extra: mapOf(STRING, listOf(STRING)),
    }),
  ],
]);

/** Purpose of an expression. It determines the variables and the result type. */
export type ClaimPurpose = 'text' | 'texts' | 'rule' | 'user rule';

/** Compiles an expression. Throws an Error with the compilation problem. */
export function compileClaimExpression(source: string, purpose: ClaimPurpose): ClaimExpression {
  const variables = purpose === 'user rule' ? USER : CLAIMS;
  const program = compile(source, { functions: standardFunctions(), variables });
  if (!mayYield(program.type, purpose)) {
    throw new Error(`must evaluate to ${WANTED[purpose]} but got ${formatType(program.type)}`);
  }
  return { source, program };
}

const WANTED = { text: 'string', texts: 'string or list(string)', rule: 'bool', 'user rule': 'bool' } as const;

function mayYield(type: Type, purpose: ClaimPurpose): boolean {
  if (type.kind === 'dyn') return true;
  if (purpose === 'text') return type.kind === 'string';
  if (purpose !== 'texts') return type.kind === 'bool';
  return type.kind === 'string' || type.kind === 'null' || (type.kind === 'list' && mayYield(type.of, 'text'));
}

type Claims = Readonly<Record<string, unknown>>;

/**
 * The user of the token, without the group system:authenticated. Throws an Error with the reason if the token is
 * rejected.
 */
export function userOfClaims(rules: ClaimRules, claims: Claims): UserInfo {
  const evaluate = evaluator();
  const ofClaims = (expression: ClaimExpression): JsonValue => evaluate(expression, claims as JsonValue);
  for (const [claim, value] of rules.requiredClaims) {
    if (claimed(claims, claim) !== value) throw new Error(`required claim ${claim}: missing or has another value`);
  }
  holdAll(rules.claimRules, ofClaims);
  const name = nameOf(rules.username, claims, ofClaims);
  const groups = groupsOf(rules.groups, claims, ofClaims);
  const uid = uidOf(rules.uid, claims, ofClaims);
  const extra = extraOf(rules.extra, claims, ofClaims);
  const user: UserInfo = {
    name,
    groups,
    ...(uid === undefined ? {} : { uid }),
    ...(Object.keys(extra).length === 0 ? {} : { extra }),
  };
  const shown = { username: name, uid: uid ?? '', groups, extra };
  holdAll(rules.userRules, (expression) => evaluate(expression, shown));
  return user;
}

type Evaluate = (expression: ClaimExpression) => JsonValue;

/** Returns a function that evaluates the expressions for one token. All expressions share a cost budget. */
function evaluator(): (expression: ClaimExpression, document: JsonValue) => JsonValue {
  let left = MAX_COST;
  return ({ source, program }, document) => {
    const budget = new Budget(Math.min(MAX_CALL_COST, Math.max(left, 0)));
    const started = budget.left;
    try {
      return toJson(program.evaluate(() => fromJson(document, ANY_READER), budget));
    } catch (error) {
      throw new Error(`expression '${source}' resulted in error: ${messageOf(error)}`, { cause: error });
    } finally {
      left -= started - Math.max(budget.left, 0);
    }
  };
}

function holdAll(rules: readonly Rule[] | undefined, evaluate: Evaluate): void {
  for (const { expression, message } of rules ?? []) {
    if (evaluate(expression) === true) continue;
    throw new Error(`validation expression '${expression.source}' failed${message === '' ? '' : `: ${message}`}`);
  }
}

function nameOf(source: ClaimRules['username'], claims: Claims, evaluate: Evaluate): string {
  const mapped = 'claim' in source;
  const name = mapped ? claimed(claims, source.claim) : evaluate(source);
  if (typeof name !== 'string' || name === '') throw new Error('username: must be a non-empty string');
  if (!mapped) return name;
  // An unverified email address does not identify a user.
  if (source.claim === 'email' && claims['email_verified'] !== undefined && claims['email_verified'] !== true) {
    throw new Error('email: not verified');
  }
  return `${source.prefix}${name}`;
}

function groupsOf(source: ClaimRules['groups'], claims: Claims, evaluate: Evaluate): string[] {
  if (source === undefined) return [];
  const found = stringsOf('claim' in source ? claimed(claims, source.claim) : evaluate(source));
  if (found === undefined) throw new Error('groups: must be a string or an array of strings');
  return 'claim' in source ? found.map((each) => `${source.prefix}${each}`) : found;
}

function uidOf(source: ClaimRules['uid'], claims: Claims, evaluate: Evaluate): string | undefined {
  if (source === undefined) return undefined;
  if ('claim' in source) {
    const uid = claimed(claims, source.claim);
    return typeof uid === 'string' ? uid : undefined;
  }
  const uid = evaluate(source);
  if (typeof uid !== 'string') throw new Error('uid: must be a string');
  return uid;
}

function extraOf(sources: ClaimRules['extra'], claims: Claims, evaluate: Evaluate): Record<string, string[]> {
  const extra: Record<string, string[]> = {};
  for (const { key, value } of sources ?? []) {
    const found = stringsOf(evaluate(value));
    if (found === undefined) throw new Error(`extra[${key}]: must be a string or an array of strings`);
    if (found.length > 0) extra[key] = found;
  }
  if (typeof claims['jti'] === 'string') {
    extra['authentication.kubernetes.io/credential-id'] = [`JTI=${claims['jti']}`];
  }
  return extra;
}

function claimed(claims: Claims, name: string): unknown {
  return Object.hasOwn(claims, name) ? claims[name] : undefined;
}

/** Strings of a claim: none, one or a list. Undefined for a value of another type. */
function stringsOf(value: unknown): string[] | undefined {
  if (value === undefined || value === null || value === '') return [];
  if (typeof value === 'string') return [value];
  return Array.isArray(value) && value.every((each) => typeof each === 'string') ? value : undefined;
}
