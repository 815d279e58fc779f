/**
 * Approves kubelet client and serving certificate requests according to the rules of
 * controllers/identity/signing-requests.
 */

import type { CertificateSigningRequest } from '../../../api/generated/certificates/v1.ts';
import type { Node, Secret } from '../../../api/generated/core/v1.ts';
import { isOurSigner, NODE_PREFIX, SIGNER } from '../../../api/kinds/identity/certificatesigningrequests/policy.ts';
import type { CertificateRequestFacts } from '../../../api/kinds/identity/certificatesigningrequests/signer-port.ts';
import {
  APPROVED_ANNOTATION,
  PROTECTED_ANNOTATIONS,
  SOURCE_EXTRA,
} from '../../../api/kinds/nodes/nodes/serving-addresses.ts';
import { isApiError } from '../../../api/meta/status.ts';
import { resources } from '../../../api/resources.ts';
import { timestamp } from '../../../base/time/timestamps.ts';
import type { Informer, ResourceClient } from '../../../client/types.ts';
import { ControllerTerm } from '../../framework/controller-term.ts';
import type { ControllerHandle, ControllerRun, ControllerSpec, RunScope } from '../../framework/framework.ts';
import { type ApprovalSnapshot, bootstrapTokenId, isPending, isReady, planApproval } from './approval.ts';
import { inspect, nameOf } from './requests-controller.ts';
import { EVIDENCE, servingEvidence } from './serving-evidence-controller.ts';

/** Permission that a requester needs for the automatic approval of a kind of request. */
const creationOf = (subresource: string) => ({
  resourceAttributes: {
    group: 'certificates.k8s.io',
    version: '*',
    resource: 'certificatesigningrequests',
    verb: 'create',
    subresource,
  },
});

export const csrApprovingController: ControllerSpec = {
  name: 'csrapproving',
  reads: [resources.certificateSigningRequests, ...EVIDENCE.reads],
  writes: [resources.certificateSigningRequests, resources.secrets, resources.nodes, ...EVIDENCE.writes],
  uses: ['signer', 'accessReview', ...EVIDENCE.uses],
  prepare,
};

interface Access {
  readonly requests: Informer<CertificateSigningRequest>;
  readonly nodes: Informer<Node>;
  readonly client: ResourceClient<CertificateSigningRequest>;
  readonly secretClient: ResourceClient<Secret>;
  readonly evidenceFor: ReturnType<typeof servingEvidence>;
}

function prepare(handle: ControllerHandle): ControllerRun {
  const access: Access = {
    requests: handle.informer(resources.certificateSigningRequests),
    nodes: handle.informer(resources.nodes),
    client: handle.writer(resources.certificateSigningRequests),
    secretClient: handle.writer(resources.secrets),
    evidenceFor: servingEvidence(handle),
  };
  return (scope) => new ApprovingController(handle, access, scope).start();
}

class ApprovingController extends ControllerTerm {
  readonly #access: Access;

  constructor(handle: ControllerHandle, access: Access, scope: RunScope) {
    super(handle, scope, 2);
    this.#access = access;
  }

  override start(): void {
    const { requests, nodes } = this.#access;
    const wake = (request: CertificateSigningRequest): void => {
      if (isPending(request)) this.queue.add(nameOf(request));
    };
    // Changes of nodes queue all requests: a serving request may arrive before its Node or before a declared address,
    // and a bootstrap request may arrive before its Node has become NotReady.
    const wakeAll = (): void => {
      for (const request of requests.list()) wake(request);
    };
    this.scope.onChange(requests, { added: wake, updated: wake });
    this.scope.onChange(nodes, {
      added: wakeAll,
      deleted: wakeAll,
      updated: (node, old) => {
        const differs = PROTECTED_ANNOTATIONS.some(
          (name) => node.metadata?.annotations?.[name] !== old.metadata?.annotations?.[name],
        );
        if (differs || isReady(node) !== isReady(old)) wakeAll();
      },
    });
  }

  protected override async sync(name: string): Promise<void> {
    const request = this.#access.requests.get(name);
    if (request === undefined || !isPending(request) || !isOurSigner(request.spec?.signerName)) return;
    const facts = inspect(this.handle, request);
    if (typeof facts === 'string') return;
    const node = this.#access.nodes.get(nodeNameOf(facts));
    const plan = planApproval(await this.#snapshotOf(request, facts, node), this.handle.plan().nowMs);
    if (plan.kind === 'ignore') return this.#logIgnored(request, node, plan.why);
    if (plan.kind === 'approve-if-allowed' && !(await this.#mayCreateAny(request, plan.subresources))) {
      this.handle.log.v(2, 'the requester has no right to automatic approval', { request: name });
      return;
    }
    if (isServing(request) && node !== undefined) await this.#recordNames(node, facts);
    await this.#approve(request, plan.message);
  }

  async #snapshotOf(
    request: CertificateSigningRequest,
    facts: CertificateRequestFacts,
    node: Node | undefined,
  ): Promise<ApprovalSnapshot> {
    const tokenId = bootstrapTokenId(request.spec?.username);
    const source = request.spec?.extra?.[SOURCE_EXTRA]?.[0];
    return {
      request,
      facts,
      node,
      evidence: await this.#access.evidenceFor(source, isServing(request), nodeNameOf(facts)),
      tokenEndsAtMs: tokenId === undefined ? undefined : await this.#tokenEnd(tokenId),
    };
  }

  #logIgnored(request: CertificateSigningRequest, node: Node | undefined, why: string): void {
    const note = { request: nameOf(request), why };
    // This is logged at the default level: until an administrator approves the request, logs, exec and port-forward of
    // the node fail.
    if (isServing(request) && node !== undefined)
      this.handle.log.info('serving certificate requires manual approval', note);
    else this.handle.log.v(2, 'certificate signing request requires manual approval', note);
  }

  /** Records the names of the approved certificate in an annotation of the node. */
  async #recordNames(node: Node, { dnsNames, ipAddresses }: CertificateRequestFacts): Promise<void> {
    const names = [...dnsNames, ...ipAddresses].join(',');
    if (node.metadata?.annotations?.[APPROVED_ANNOTATION] === names) return;
    const patch = { metadata: { annotations: { [APPROVED_ANNOTATION]: names } } };
    await this.handle.writer(resources.nodes).patch(node.metadata?.name ?? '', undefined, 'merge', patch);
  }

  async #approve(request: CertificateSigningRequest, message: string): Promise<void> {
    const now = timestamp(this.handle.plan().nowMs);
    const condition = {
      type: 'Approved',
      status: 'True',
      reason: 'AutoApproved',
      message,
      lastUpdateTime: now,
      lastTransitionTime: now,
    };
    const status = { ...request.status, conditions: [...(request.status?.conditions ?? []), condition] };
    await this.#access.client.update({ ...request, status }, { subresource: 'approval' });
    this.handle.log.info('approved a certificate signing request', { request: nameOf(request) });
  }

  /** Whether the requester may create at least one of these sub-resources of certificate signing requests. */
  async #mayCreateAny(request: CertificateSigningRequest, subresources: readonly string[]): Promise<boolean> {
    const { username: name = '', uid, groups = [], extra } = request.spec ?? {};
    const user = { name, groups, ...(uid === undefined ? {} : { uid }), ...(extra === undefined ? {} : { extra }) };
    for (const subresource of subresources)
      if (await this.handle.use('accessReview')(user, creationOf(subresource))) return true;
    return false;
  }

  /** Expiration of a bootstrap token; undefined if it never expires. An invalid time counts as absent. */
  async #tokenEnd(id: string): Promise<number | 'absent' | undefined> {
    let secret: Secret;
    try {
      secret = await this.#access.secretClient.get(`bootstrap-token-${id}`, 'kube-system');
    } catch (error) {
      if (isApiError(error, 'NotFound')) return 'absent';
      throw error;
    }
    const expiration = secret.data?.['expiration'];
    if (expiration === undefined) return undefined;
    const endsAtMs = Date.parse(Buffer.from(expiration, 'base64').toString('utf8'));
    return Number.isNaN(endsAtMs) ? 'absent' : endsAtMs;
  }
}

const isServing = ({ spec }: CertificateSigningRequest): boolean => spec?.signerName === SIGNER.kubeletServing;

/** Name of the node in the common name; empty if the subject is not a node. */
const nodeNameOf = ({ commonName }: CertificateRequestFacts): string =>
  commonName.startsWith(NODE_PREFIX) ? commonName.slice(NODE_PREFIX.length) : '';
