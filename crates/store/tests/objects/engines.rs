//! The engines that need no service.

use oblivio_store::objects::folder::FolderObjects;
use oblivio_store::objects::memory::MemoryService;

use crate::contract;

#[test]
fn memory_keeps_the_contract() {
    for seed in 0..10 {
        let service = MemoryService::new(seed);
        contract::check(|| service.client());
    }
}

#[test]
fn a_folder_keeps_the_contract() {
    let folder = tempfile::tempdir().unwrap();
    contract::check(|| FolderObjects::create(&folder.path().join("objects")).unwrap());
}
