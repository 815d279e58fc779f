import assert from 'node:assert/strict';
import { it } from 'node:test';
import { WatchTracker } from '../../../src/apiserver/flow-control/watch-tracker.ts';
import { parseRequestInfo, type ResourceRequestInfo } from '../../../src/apiserver/http/request-info.ts';

function info(method: string, url: string): ResourceRequestInfo {
  const parsed = parseRequestInfo(method, url);
  assert.ok(parsed.resource);
  return parsed;
}

it('counts the open watches that a write notifies, by kind, namespace and object', () => {
  const tracker = new WatchTracker();
  const watch = (path: string): (() => void) => tracker.register(info('GET', path));
  const leave = [
    watch('/api/v1/pods?watch=true'),
    watch('/api/v1/pods?watch=true'),
    watch('/api/v1/namespaces/a/pods?watch=true'),
    watch('/api/v1/namespaces/b/pods?watch=true'),
    watch('/api/v1/namespaces/a/pods?watch=true&fieldSelector=metadata.name%3Dx'),
    watch('/api/v1/pods?watch=true&fieldSelector=spec.nodeName%3Dn1'),
    watch('/apis/apps/v1/deployments?watch=true'),
    watch('/api/v1/nodes?watch=true&fieldSelector=metadata.name%3Dn1'),
  ];
  const interested = (method: string, path: string): number => tracker.interested(info(method, path));
  assert.equal(interested('POST', '/api/v1/namespaces/a/pods'), 3);
  assert.equal(interested('PUT', '/api/v1/namespaces/a/pods/x'), 4);
  assert.equal(interested('PATCH', '/api/v1/namespaces/a/pods/x/status'), 4);
  assert.equal(interested('DELETE', '/api/v1/namespaces/c/pods/x'), 2);
  assert.equal(interested('DELETE', '/apis/apps/v1/namespaces/a/deployments/x'), 1);
  assert.equal(interested('PATCH', '/api/v1/nodes/n1/status'), 1);
  assert.equal(interested('PATCH', '/api/v1/nodes/n2/status'), 0);
  assert.equal(interested('POST', '/api/v1/namespaces/a/secrets'), 0);
  for (const each of leave) each();
  assert.equal(interested('PUT', '/api/v1/namespaces/a/pods/x'), 0);
  assert.equal(interested('PATCH', '/api/v1/nodes/n1/status'), 0);
});
