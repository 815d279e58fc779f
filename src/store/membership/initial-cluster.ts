export interface InitialMember {
  readonly name: string;
  readonly peerUrls: readonly string[];
}

/** The initial members; ignored once the store has an identity. */
export interface InitialCluster {
  readonly members: readonly InitialMember[];
  readonly token: string;
  /** Whether the cluster exists and this member has been added to it. */
  readonly existing: boolean;
  /** Whether a member that was not added to the existing cluster requests its admission from the leader. */
  readonly joins?: boolean;
}
