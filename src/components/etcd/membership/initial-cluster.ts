export interface InitialMember {
  readonly name: string;
  readonly peerUrls: readonly string[];
}

/** The initial members; ignored once the store has an identity. */
export interface InitialCluster {
  readonly members: readonly InitialMember[];
  readonly token: string;
  /** The cluster exists and this member has been added to it. */
  readonly existing: boolean;
  /** A member that has not been added to the existing cluster asks its leader to add it. */
  readonly joins?: boolean;
}
