import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { matchPath } from '../../src/console/shell/match-path.ts';

describe('matchPath', () => {
  it('matchPath returns the decoded values of the named segments', () => {
    assert.deepEqual(matchPath('/pods/:namespace/:name', '/pods/a%2Fb/c'), { namespace: 'a/b', name: 'c' });
    assert.deepEqual(matchPath('/', '/'), {});
  });

  it('accepts a path without its optional segment, and matches the rest of a path', () => {
    assert.deepEqual(matchPath('/workloads/:kind?', '/workloads'), {});
    assert.deepEqual(matchPath('/workloads/:kind?', '/workloads/jobs/'), { kind: 'jobs' });
    assert.deepEqual(matchPath('/any/*', '/any/apps/v1/deployments'), { rest: 'apps/v1/deployments' });
  });

  it('matchPath rejects other paths and invalid escapes', () => {
    assert.equal(matchPath('/pods/:namespace/:name', '/pods/a'), undefined);
    assert.equal(matchPath('/pods/:namespace', '/pods/a/b'), undefined);
    assert.equal(matchPath('/pods/:namespace', '/nodes/a'), undefined);
    assert.equal(matchPath('/pods/:namespace', '/pods/%zz'), undefined);
  });
});
