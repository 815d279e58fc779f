/** The authorizer library of CEL, with the examples of the Kubernetes documentation. */
import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { Budget } from '../../../src/api/cel/compiled-expression.ts';
import { compile } from '../../../src/api/cel/language/compile.ts';
import {
  type AccessChecker,
  type AccessRequest,
  AUTHORIZER_TYPE,
  authorizerValue,
  RESOURCE_CHECK_TYPE,
  resourceCheckValue,
} from '../../../src/api/cel/library/authorizer.ts';
import { standardFunctions } from '../../../src/api/cel/library/index.ts';
import type { Value } from '../../../src/api/cel/values.ts';

const variables = new Map([
  ['authorizer', AUTHORIZER_TYPE],
  ['authorizer.requestResource', RESOURCE_CHECK_TYPE],
]);

/** Evaluates an expression and returns its value and the checks it made. */
function run(source: string, answer: ReturnType<AccessChecker>, budget = 1_000_000): [Value, AccessRequest[]] {
  const questions: AccessRequest[] = [];
  const ask: AccessChecker = (question) => {
    questions.push(question);
    return answer;
  };
  const program = compile(source, { functions: standardFunctions(), variables });
  const value = program.evaluate(
    (name) =>
      name === 'authorizer'
        ? authorizerValue(ask)
        : resourceCheckValue(ask, { group: 'apps', resource: 'deployments' }),
    new Budget(budget),
  );
  return [value, questions];
}

const yes = { allowed: true, reason: 'because', error: '' };

describe('the authorizer variable of CEL', () => {
  it('passes the attributes of an authorization check to the authorizer', () => {
    const cases: [string, AccessRequest][] = [
      ["authorizer.path('/healthz').check('get').allowed()", { path: '/healthz', verb: 'get' }],
      [
        "authorizer.group('').resource('pods').namespace('default').name('a').check('create').allowed()",
        { group: '', resource: 'pods', namespace: 'default', name: 'a', verb: 'create' },
      ],
      [
        "authorizer.group('apps').resource('deployments').subresource('status').check('update').allowed()",
        { group: 'apps', resource: 'deployments', subresource: 'status', verb: 'update' },
      ],
      [
        "authorizer.serviceAccount('ns', 'sa').group('').resource('pods').check('get').allowed()",
        { account: { namespace: 'ns', name: 'sa' }, group: '', resource: 'pods', verb: 'get' },
      ],
      [
        "authorizer.group('').resource('pods').fieldSelector('spec.nodeName=n').labelSelector('a in (b)').check('list').allowed()",
        { group: '', resource: 'pods', fieldSelector: 'spec.nodeName=n', labelSelector: 'a in (b)', verb: 'list' },
      ],
      [
        "authorizer.requestResource.subresource('scale').check('custom').allowed()",
        { group: 'apps', resource: 'deployments', subresource: 'scale', verb: 'custom' },
      ],
    ];
    for (const [source, question] of cases) assert.deepEqual(run(source, yes), [true, [question]], source);
  });

  it('an expression reads the decision of the authorizer and its reason', () => {
    const check = "authorizer.path('/x').check('get')";
    assert.equal(run(`${check}.reason()`, yes)[0], 'because');
    assert.equal(run(`${check}.errored()`, yes)[0], false);
    const broken = { allowed: false, reason: '', error: 'nobody answers' };
    assert.equal(run(`${check}.errored() ? ${check}.error() : ''`, broken)[0], 'nobody answers');
    assert.equal(run(`${check}.allowed()`, broken)[0], false);
  });

  it('rejects invalid authorization checks', () => {
    assert.throws(() => run("authorizer.path('').check('get').allowed()", yes), /path must not be empty/);
    assert.throws(
      () => run("authorizer.serviceAccount('Not One', 'sa').path('/x').check('get').allowed()", yes),
      /Invalid service account namespace/,
    );
    for (const source of [
      "authorizer.check('get')",
      "authorizer.group('').check('get')",
      'authorizer.unknown',
      "authorizer.path('/x').name('y')",
      "authorizer.requestResource.group('')",
    ]) {
      assert.throws(() => compile(source, { functions: standardFunctions(), variables }), /ERROR/, source);
    }
    const own = "['x'].all(authorizer, authorizer == 'x')";
    assert.equal(run(own, yes)[0], true, 'a variable of the expression hides it');
  });

  it('the cost of authorization checks limits an expression to two checks', () => {
    const check = (path: string): string => `authorizer.path('${path}').check('get').allowed()`;
    assert.equal(run(`${check('/a')} && ${check('/b')}`, yes)[0], true);
    assert.throws(() => run(`${check('/a')} && ${check('/b')} && ${check('/c')}`, yes), /cost limit exceeded/);
  });

  it('logical operators of CEL do not absorb the exception of a pending authorization decision', () => {
    class Later extends Error {}
    const program = compile("authorizer.path('/x').check('get').allowed() || true", {
      functions: standardFunctions(),
      variables,
    });
    const later = authorizerValue(() => {
      throw new Later();
    });
    assert.throws(() => program.evaluate(() => later, new Budget(1_000_000)), Later);
  });
});
