/** How a node whose client certificate has expired is recognized by API server, approver and host. Decision 0018. */

/** The group of such a node, which is not in `system:nodes`. */
export const EXPIRED_NODES_GROUP = 'system:expired-nodes';

/**
 * `sha256:` and the hex SHA-256 of a client certificate's SubjectPublicKeyInfo: the annotation of a Node with its
 * current one, and the extra of a user whose certificate has expired.
 */
export const CLIENT_KEY = 'hyperedge.dev/client-key';
